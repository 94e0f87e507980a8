"""What is refused before a trainer starts: one clear error a fault, exit code 1, nothing left behind."""

import asyncio
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.cli.command import call, make_job, write_manifest

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    make_job(folder)
    return folder


@pytest.fixture
def job(made: Path, tmp_path: Path) -> Path:
    """A folder with a job of its own that would run."""
    folder = tmp_path / "job"
    shutil.copytree(made, folder)
    return folder


def test_a_right_manifest_is_valid(job: Path) -> None:
    ended = call("validate", "job.yaml", folder=job)

    assert ended.status == 0, ended.stderr
    assert "valid" in ended.stderr


def test_every_wrong_key_and_value_is_told_at_once_with_path_line_and_nearest_name(job: Path) -> None:
    write_manifest(
        job,
        {
            "spec.modle": {"path": "model"},
            "spec.config.actor_rollout_ref.agent.max_turn": 3,
            "spec.config.data.train_batch_sise": 4,
            "spec.checkpoints.every": 0,
        },
    )

    ended = call("validate", "job.yaml", folder=job)

    ended.assert_refused()
    text = "\n".join(ended.errors)
    assert len(ended.errors) == 4, text
    for name, near in (("modle", "model"), ("max_turn", "max_turns"), ("train_batch_sise", "train_batch_size")):
        assert any(name in line and f"{near!r}" in line and "line" in line for line in ended.errors), text
    assert "spec.checkpoints.every" in text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "job.yaml", "--set", "trainer.total_epoch=2"), "total_epochs"),
        (("run", "job.yaml", "--resume"), "there is no run of tiny"),
        (("report", "nowhere"), "there is no such folder"),
    ],
)
def test_a_wrong_command_line_names_what_is_wrong(job: Path, arguments: tuple[str, ...], told: str) -> None:
    ended = call(*arguments, folder=job)

    ended.assert_refused()
    assert told in ended.stderr


def test_a_missing_model_and_missing_data_are_told_together(job: Path) -> None:
    shutil.rmtree(job / "model")
    (job / "train.parquet").unlink()

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert any(line.startswith("spec.model.path") for line in ended.errors)
    assert any(line.startswith("spec.data.train[0]") for line in ended.errors)


def empty(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(0, 0), path)


def not_parquet(path: Path) -> None:
    path.write_text("prompt,answer\n")


def without_messages(path: Path) -> None:
    pq.write_table(
        pa.table({"prompt": ["1+1="], "data_source": ["sums"], "reward_model": [{"ground_truth": "2"}]}), path
    )


def with_a_long_prompt(path: Path) -> None:
    rows = pq.read_table(path).to_pylist()
    rows[5]["prompt"] = [{"role": "user", "content": "7" * 100}]
    pq.write_table(pa.Table.from_pylist(rows), path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (empty, "has no rows"),
        (not_parquet, "cannot be read as parquet"),
        (without_messages, "it is a list of messages"),
        (with_a_long_prompt, "row 5"),
    ],
)
def test_a_data_set_that_cannot_be_trained_on_is_refused(job: Path, spoil: Callable[[Path], None], told: str) -> None:
    spoil(job / "train.parquet")

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert any("spec.data.train[0]" in line and told in line for line in ended.errors), ended.stderr


def test_a_chat_template_that_refuses_is_told_with_its_own_words(job: Path) -> None:
    (job / "model" / "chat_template.jinja").write_text("{{ raise_exception('only system messages, please') }}")

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert "only system messages, please" in ended.stderr


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def score(): ...", "no function 'compute_score'"),
        ("import nothing_of_the_kind", "nothing_of_the_kind"),
        ("def compute_score(answer): ...", "does not take"),
    ],
)
def test_a_reward_that_cannot_be_called_is_refused(job: Path, code: str, told: str) -> None:
    (job / "reward.py").write_text(code)

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert any("spec.reward" in line and told in line for line in ended.errors), ended.stderr


@pytest.fixture
def stranger() -> Iterator[Callable[[bytes, float], str]]:
    """Starts a server that is no tool server, with an answer and seconds that it takes; gives its address."""
    servers: list[ThreadingHTTPServer] = []
    stop = threading.Event()

    def start(answer: bytes, seconds: float) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stop.wait(seconds)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    stop.set()
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("answer", "seconds", "told"),
    [
        (b"<html>", 0.0, "no JSON"),
        (json.dumps({"status": "ok"}).encode(), 0.0, "names no tools"),
        (json.dumps({"tools": ["search"]}).encode(), 0.0, "not python_code"),
        (b"{}", 60.0, "start it"),
    ],
)
def test_a_tool_server_that_is_wrong_or_slow_is_told_by_its_address(
    job: Path, stranger: Callable[[bytes, float], str], answer: bytes, seconds: float, told: str
) -> None:  # R16
    url = stranger(answer, seconds)
    write_manifest(job, {"spec.toolServer": {"tools": ["python_code"], "url": url}})

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert any(url.removeprefix("http://") in line and told in line for line in ended.errors), ended.stderr


def test_a_tool_server_that_is_down_is_told_by_its_address(job: Path) -> None:  # R16
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    write_manifest(job, {"spec.toolServer": {"tools": ["python_code"], "url": url}})

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert any("spec.toolServer.url" in line and "start it" in line for line in ended.errors)


def test_a_tool_that_there_is_not_is_refused(job: Path) -> None:
    write_manifest(job, {"spec.toolServer": {"tools": ["pyton_code"]}})

    ended = call("run", "job.yaml", folder=job)

    ended.assert_refused()
    assert "pyton_code" in ended.stderr and "python_code" in ended.stderr


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = call("serve", "--port", port, folder=tmp_path)

    ended.assert_refused()
    assert port in ended.errors[0]


def test_a_disk_without_room_is_refused_before_anything_is_written(job: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True)
    try:
        ended = call("run", "job.yaml", "--runs", str(small), folder=job)
    finally:
        subprocess.run(["umount", str(small)], check=True)

    ended.assert_refused()
    assert any("MiB are free" in line for line in ended.errors)


def test_one_call_prints_the_observation_and_ends_its_server(tmp_path: Path) -> None:
    ended = call("call", "<python>print(6 * 7)</python>", folder=tmp_path)

    assert ended.status == 0, ended.stderr
    assert "42" in ended.stdout
    assert ended.processes == []


def test_a_text_without_a_call_is_an_error_of_its_own(tmp_path: Path) -> None:
    ended = call("call", "hello", folder=tmp_path)

    ended.assert_refused()
    assert ended.stdout == ""


async def test_serve_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    from tests.integration.cli.command import Command

    command = Command("serve", "--port", "0", "--port-file", "port", folder=tmp_path)
    while not (tmp_path / "port").exists() or not (tmp_path / "port").read_text().strip():
        assert command.process.poll() is None, command.stderr
        await asyncio.sleep(0.05)
    port = (tmp_path / "port").read_text().strip()
    ended = await asyncio.to_thread(
        call, "call", "<python>print(1 + 1)</python>", "--url", f"http://127.0.0.1:{port}", folder=tmp_path
    )
    command.process.terminate()

    assert "2" in ended.stdout, ended.stderr
    assert command.wait(30).status == 0
