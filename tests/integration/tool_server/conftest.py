"""A real server process on a free port, and what of it can be seen from outside."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

START_LIMIT = 60.0
ROOT = Path(__file__).parents[3]


@dataclass
class RunningServer:
    """A server that answers."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def post(self, *actions: str, ids: list[str] | None = None, **fields: object) -> dict[str, list]:
        """One request with these actions; the answer of a 200."""
        ids = ids or [f"t{index}" for index in range(len(actions))]
        response = self.post_raw(actions=list(actions), trajectory_ids=ids, **fields)
        assert response.status_code == 200, response.text
        return response.json()

    def post_raw(self, **body: object) -> httpx.Response:
        """Escaped JSON, which can carry what UTF-8 cannot."""
        return httpx.post(f"{self.url}/get_observation", content=json.dumps(body), timeout=60)

    def run(self, code: str, **extra: object) -> str:
        """What a model reads of this code's run."""
        answer = self.post(f"<python>{code}</python>", extra_fields=[extra])
        assert answer["valids"] == [True], answer
        return answer["observations"][0].removeprefix("\n<result>\n").removesuffix("\n</result>\n")

    def health(self) -> dict[str, object]:
        return httpx.get(f"{self.url}/health", timeout=10).json()

    def tree(self) -> set[int]:
        """The server's process and all below it."""
        found, pending = set(), [self.process.pid]
        while pending:
            pid = pending.pop()
            found.add(pid)
            pending += children(pid)
        return found

    def running_snippets(self) -> set[int]:
        """Processes below the supervisors: server, zygote, supervisor, snippet."""
        below = {self.process.pid}
        for _ in range(3):
            below = {child for pid in below for child in children(pid)}
        return below

    def resident_bytes(self) -> int:
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    try:
        return [
            int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()
        ]
    except OSError:
        return []  # it ended meanwhile


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "verl_tool.tool_server", "--port", "0", "--port-file", str(folder / "port"), *options]


def start_server(folder: Path, *options: str) -> RunningServer:
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command(folder, *options), stderr=file, cwd=ROOT, env={**os.environ, "SERVER_SECRET": "do-not-tell"}
        )
    until = time.monotonic() + START_LIMIT
    while not (folder / "port").exists():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)
    return RunningServer(process, f"http://127.0.0.1:{(folder / 'port').read_text().strip()}", log)


def stop_server(server: RunningServer) -> None:
    if server.process.poll() is None:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=40)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Shared by the tests that leave it as they found it. A time limit of two seconds."""
    running = start_server(
        tmp_path_factory.mktemp("server"),
        *("--set", "python_code.seconds=2"),
        *("--set", "python_code.cpu_seconds=2"),
        *("--set", "python_code.memory_mib=512"),
        *("--set", "python_code.file_mib=8"),
    )
    yield running
    stop_server(running)


@pytest.fixture
def a_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Starts a server of a test's own, with its options."""
    started: list[RunningServer] = []

    def start(*options: str) -> RunningServer:
        started.append(start_server(tmp_path, *options))
        return started[-1]

    yield start
    for running in started:
        stop_server(running)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
