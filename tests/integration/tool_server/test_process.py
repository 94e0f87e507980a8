"""The server as a process: how it starts, refuses to start, fills up, and ends."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.integration.tool_server.conftest import ROOT, RunningServer, command, wait_until

TOOLS_FILE = """
import asyncio
from verl_tool.tool_server.tools.base import Outcome, Tool

class Echo(Tool[str]):
    name = "echo"

    def parse_action(self, text):
        return text.removeprefix("echo ") if text.startswith("echo ") else None

    async def conduct_action(self, trajectory_id, action, extra_field):
        if action == "raise":
            raise RuntimeError("broken pipe organ")
        if action == "nonsense":
            return 5
        if action == "sleep":
            await asyncio.sleep(1)
        return Outcome(action)

class NoSetUp(Echo):
    name = "no_set_up"

    async def start(self):
        raise RuntimeError("its database is missing")
"""


@pytest.fixture
def tools_file(tmp_path: Path) -> Path:
    path = tmp_path / "own_tools.py"
    path.write_text(TOOLS_FILE)
    return path


def refused(folder: Path, *options: str) -> str:
    """Starts a server that cannot start; what it says."""
    ended = subprocess.run(command(folder, *options), capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
    assert not (folder / "port").exists()
    return ended.stderr.splitlines()[-1]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: set[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def test_an_unknown_tool_keeps_the_server_from_starting(tmp_path: Path) -> None:
    """T15"""
    message = refused(tmp_path, "--tools", "python_cod,finish")
    assert "'python_cod'" in message and "did you mean 'python_code'" in message


def test_a_tool_whose_set_up_fails_keeps_the_server_from_starting(tmp_path: Path, tools_file: Path) -> None:
    """T15"""
    message = refused(tmp_path, "--tool", f"{tools_file}:NoSetUp")
    assert "'no_set_up'" in message and "its database is missing" in message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tool", "nowhere.py:Echo"), "nowhere.py"),
        (("--set", "python_code.secnods=3"), "did you mean 'seconds'"),
        (("--set", "python_code.seconds=-3"), "python_code.seconds"),
        (("--set", "python_code.preload=[no_such_module]"), "python_code"),
        (("--port", "70000"), "--port"),
        (("--max-items", "100000"), "queue_limit"),
        (("--host", "no.such.host.invalid"), "no.such.host.invalid"),
    ],
)
def test_a_wrong_option_keeps_the_server_from_starting(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    assert said in refused(tmp_path, *options)


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert str(port) in refused(tmp_path, "--port", str(port))


def test_a_tool_of_ones_own_that_raises_ends_its_row_only(
    a_server: Callable[..., RunningServer], tools_file: Path
) -> None:
    server = a_server("--tool", f"{tools_file}:Echo")
    answer = server.post("echo hello", "echo raise", "echo nonsense", "<python>print(1)</python>", "echo again")
    assert answer["observations"][0] == "hello"
    assert answer["observations"][1]["error"] == "RuntimeError: broken pipe organ"
    assert answer["observations"][1]["tool_type"] == "echo"
    assert "TypeError" in answer["observations"][2]["error"]
    assert answer["observations"][4] == "again"
    assert answer["dones"] == [False, True, True, False, False]
    assert answer["valids"] == [True, False, False, True, True]


async def test_past_the_queue_limit_a_request_is_sent_away_and_the_others_lose_nothing(
    a_server: Callable[..., RunningServer], tools_file: Path
) -> None:
    """T13, in small"""
    server = a_server("--tool", f"{tools_file}:Echo", "--max-concurrent", "4", "--queue-limit", "8", "--max-items", "4")
    body = {"trajectory_ids": ["t"], "actions": ["echo sleep"]}
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=40), timeout=30) as client:
        answers = await asyncio.gather(*(client.post(f"{server.url}/get_observation", json=body) for _ in range(40)))
    accepted = [answer for answer in answers if answer.status_code == 200]
    sent_away = [answer for answer in answers if answer.status_code == 503]
    assert len(accepted) == 12 and len(sent_away) == 28
    assert all(answer.json()["observations"] == ["sleep"] for answer in accepted)
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in sent_away)
    assert server.health()["waiting"] == 0


def test_an_item_that_outlasts_the_request_limit_says_so_and_its_neighbours_answer(
    a_server: Callable[..., RunningServer],
) -> None:
    """T23"""
    server = a_server("--request-seconds", "1.5")
    answer = server.post(*["<python>print(1)</python>"] * 7, "<python>import time; time.sleep(6)</python>")
    assert answer["observations"][:7] == ["\n<result>\n1\n</result>\n"] * 7
    assert answer["observations"][7]["timeout"] is True and "time limit of 1.5 s" in answer["observations"][7]["obs"]
    assert wait_until(lambda: not server.running_snippets(), 1)


def test_a_terminated_server_lets_running_calls_end_and_leaves_nothing(a_server: Callable[..., RunningServer]) -> None:
    """T16, in part"""
    server = a_server()
    with subprocess.Popen(
        [sys.executable, "-c", POST, f"{server.url}/get_observation", "import time; time.sleep(1); print('done')"],
        stdout=subprocess.PIPE,
        text=True,
    ) as client:
        assert wait_until(lambda: server.health()["active_tasks"] == 1, 20)
        pids = server.tree()
        server.process.send_signal(signal.SIGTERM)
        assert "done" in client.communicate(timeout=20)[0]
    assert server.process.wait(timeout=10) == 0
    assert gone(pids)


POST = """
import sys, httpx
url, code = sys.argv[1:]
print(httpx.post(url, json={"trajectory_ids": ["t"], "actions": [f"<python>{code}</python>"]}, timeout=60).text)
"""


def test_nothing_outlives_a_server_that_is_killed(a_server: Callable[..., RunningServer]) -> None:
    """T24"""
    server = a_server()
    with subprocess.Popen(
        [sys.executable, "-c", POST, f"{server.url}/get_observation", ORPHANS], stderr=subprocess.DEVNULL
    ) as client:
        assert wait_until(lambda: len(server.running_snippets()) >= 1 and len(server.tree()) >= 7, 20)
        pids = server.tree()
        server.process.kill()
        server.process.wait()
        assert wait_until(lambda: gone(pids), 2), [pid for pid in pids if alive(pid)]
        client.wait(timeout=20)


ORPHANS = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
time.sleep(60)
"""


def test_a_server_bound_to_its_parent_ends_with_it(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import subprocess, sys, time; subprocess.Popen(sys.argv[1:]); time.sleep(600)",
            *command(tmp_path, "--exit-with-parent"),
        ],
        cwd=ROOT,
    )
    assert wait_until((tmp_path / "port").exists, 60)
    pids = RunningServer(parent, "", tmp_path / "log").tree()
    assert len(pids) >= 3
    parent.kill()
    parent.wait()
    assert wait_until(lambda: gone(pids), 5)
    assert not (tmp_path / "port").exists()


def test_the_port_file_holds_the_port_and_nothing_goes_to_stdout(a_server: Callable[..., RunningServer]) -> None:
    started = time.monotonic()
    server = a_server()
    assert server.health()["status"] == "healthy"
    assert time.monotonic() - started < 30
    assert os.path.exists(server.log)
