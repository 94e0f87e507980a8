"""What is wrong is said by the real command before a trainer is started: the thing, the remedy, and nothing left."""

import http.server
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from tests.integration.cli.jobs import Folder

pytestmark = pytest.mark.timeout(300)


def test_every_fault_of_a_manifest_is_told_at_once_with_line_and_nearest_name(folder: Folder) -> None:
    folder.set(spec__modle={"path": "x"}, spec__config__trainer__total_epoch=3, spec__toolServer__tools="python_code")
    ended = folder.verl_tool("validate", "job.yaml")
    ended.refused("line", "modle", "model", "total_epoch", "total_epochs", "spec.toolServer.tools")
    assert ended.err.count("error: ") >= 3


def test_a_valid_manifest_is_summed_up(folder: Folder) -> None:
    ended = folder.verl_tool("validate", "job.yaml")
    assert ended.code == 0 and "valid" in ended.err and "python_code" in ended.err


def test_a_wrong_setting_on_the_command_line_is_named(folder: Folder) -> None:
    folder.verl_tool("run", "job.yaml", "--set", "trainer.total_epoch=3").refused("--set", "total_epochs")
    assert not (folder.path / "runs").exists()


def test_an_unknown_option_is_an_error_of_usage(folder: Folder) -> None:
    ended = folder.verl_tool("run", "job.yaml", "--resum")
    assert ended.code == 2 and "--resume" in ended.err and "Traceback" not in ended.err


def test_a_manifest_that_is_not_there_is_named(folder: Folder) -> None:
    folder.verl_tool("run", "jop.yaml").refused("jop.yaml")


def test_a_missing_model_and_missing_data_are_told_together(folder: Folder) -> None:
    folder.set(spec__model__path="./no-model", spec__data__train=["./no-data.parquet"])
    folder.verl_tool("run", "job.yaml").refused("spec.model.path", "no-model", "spec.data.train", "no-data.parquet")


def test_an_empty_and_a_malformed_data_set_are_told_by_file(folder: Folder) -> None:
    (folder.path / "train.jsonl").write_text("")
    (folder.path / "val.parquet").write_text("this is no parquet")
    folder.set(spec__data__train=["./train.jsonl"])
    folder.verl_tool("run", "job.yaml").refused("train.jsonl", "no rows", "val.parquet", "parquet")


def test_rows_without_messages_are_told_by_number(folder: Folder) -> None:
    (folder.path / "train.jsonl").write_text(json.dumps({"prompt": "1+1", "data_source": "sums"}) + "\n")
    folder.set(spec__data__train=["./train.jsonl"])
    folder.verl_tool("run", "job.yaml").refused("row 0", "train.jsonl", "list of messages")


def test_a_prompt_longer_than_allowed_is_told_with_its_length(folder: Folder) -> None:
    folder.set(spec__config__data__max_prompt_length=8)
    folder.verl_tool("run", "job.yaml").refused("tokens", "max_prompt_length allows 8", "filter_overlong_prompts")


def test_a_chat_template_that_refuses_is_told_with_its_words(folder: Folder) -> None:
    target = folder.path / "refusing"
    tokenizer = AutoTokenizer.from_pretrained(folder.path / "model")
    tokenizer.chat_template = "{{ raise_exception('only kings may speak') }}"
    tokenizer.save_pretrained(target)
    for file in (folder.path / "model").iterdir():
        if not (target / file.name).exists():
            (target / file.name).symlink_to(file.resolve())
    folder.set(spec__model__path="./refusing")
    folder.verl_tool("run", "job.yaml").refused("only kings may speak", "custom_chat_template")


def test_a_reward_file_that_cannot_be_imported_and_one_without_the_function(folder: Folder) -> None:
    (folder.path / "reward.py").write_text("raise RuntimeError('no licence')")
    folder.verl_tool("run", "job.yaml").refused("spec.reward", "RuntimeError", "no licence")
    (folder.path / "reward.py").write_text("def score(): ...")
    folder.verl_tool("run", "job.yaml").refused("spec.reward", "compute_score", "score")


def test_a_prepare_that_fails_is_told_with_its_words(folder: Folder) -> None:
    (folder.path / "make.py").write_text("import sys; sys.exit('error: the moon is down')")
    folder.set(spec__prepare={"command": ["python", "make.py"]})
    folder.verl_tool("run", "job.yaml").refused("spec.prepare", "the moon is down")


def test_a_tool_server_that_is_down_is_named(folder: Folder) -> None:  # R16
    folder.set(spec__toolServer={"tools": ["python_code"], "url": f"http://127.0.0.1:{free_port()}"})
    folder.verl_tool("run", "job.yaml").refused("spec.toolServer.url", "127.0.0.1")


@pytest.mark.parametrize("seconds", [0, 3600], ids=["wrong", "slow"])
def test_a_tool_server_that_is_another_service_or_never_answers_is_named(folder: Folder, seconds: float) -> None:  # R16
    with service(seconds) as url:
        folder.set(spec__toolServer={"tools": ["python_code"], "url": url})
        folder.verl_tool("run", "job.yaml").refused("spec.toolServer.url", url)


def test_a_tool_that_nobody_knows_is_named(folder: Folder) -> None:
    folder.set(spec__toolServer={"tools": ["pyton_code"]})
    folder.verl_tool("run", "job.yaml").refused("spec.toolServer", "pyton_code", "python_code")


def test_a_port_in_use_is_named(folder: Folder) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        folder.verl_tool("serve", "--tools", "python_code", "--port", str(port)).refused(str(port))


def test_a_disk_without_room_is_told_before_anything_is_made(folder: Folder) -> None:
    with small_disk(folder.path / "runs", "8m"):
        folder.verl_tool("run", "job.yaml").refused("runs", "MiB are free", "--runs")


def test_there_is_nothing_to_resume_before_the_first_run(folder: Folder) -> None:
    folder.verl_tool("run", "job.yaml", "--resume").refused("--resume", "no run of tiny")


def test_a_call_prints_the_observation_and_an_invalid_one_fails(folder: Folder) -> None:
    ended = folder.verl_tool("call", "<python>print(6 * 7)</python>")
    assert (ended.code, "42" in ended.out) == (0, True), ended.err
    ended.nothing_left()
    folder.verl_tool("call", "forty-two").refused("no tool accepts")


def test_a_report_of_no_run_is_refused(folder: Folder) -> None:
    folder.verl_tool("report", "runs/nothing").refused("runs/nothing")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def service(delay: float) -> Iterator[str]:
    """Something that is no tool server; it answers after `delay` seconds or at its end."""
    over = threading.Event()

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            over.wait(delay)
            self.send_response(200)
            self.end_headers()

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            over.set()
            server.shutdown()


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A file system of its own."""
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)
