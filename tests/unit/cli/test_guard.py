"""Whatever a command starts, and however it or its starter ends: nothing of it is left."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from verl_tool.cli import guard

# A command that goes astray in every way: a child in a session of its own that has lost its parent and does not hear
# SIGTERM, and a file in /dev/shm that nobody removes.
STRAY = """
import os, signal, sys, time, mmap
name = sys.argv[1]
file = open("/dev/shm/" + name, "w+b")
file.truncate(4096)
memory = mmap.mmap(file.fileno(), 4096)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[2], "w").write(str(os.getpid()))
        time.sleep(600)
    os._exit(0)
while not (os.path.exists(sys.argv[2]) and open(sys.argv[2]).read()):
    time.sleep(0.01)
print("ready", flush=True)
exec(sys.argv[3])
"""


@pytest.fixture
def stray(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started = []

    def start(then: str, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", STRAY, shm_name(tmp_path), str(tmp_path / "pid"), then]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, "--sweep=0.3", *options, "--", *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()
    with contextlib.suppress(OSError):
        os.unlink(f"/dev/shm/{shm_name(tmp_path)}")


def shm_name(tmp_path: Path) -> str:
    return f"verl-tool-test-{os.getpid()}-{tmp_path.name}"


def nothing_left(tmp_path: Path) -> bool:
    pid = (tmp_path / "pid").read_text()
    return not os.path.exists(f"/proc/{pid}") and not os.path.exists(f"/dev/shm/{shm_name(tmp_path)}")


@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("pass", 0),
        ("sys.exit(3)", 3),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("os.kill(os.getpid(), signal.SIGSEGV)", 139),
    ],
)
def test_however_the_command_ends_nothing_is_left(
    stray: Callable[..., subprocess.Popen[str]], tmp_path: Path, then: str, code: int
) -> None:
    assert stray(then).wait(30) == code
    assert nothing_left(tmp_path)


def test_sigterm_is_handed_on_and_the_command_may_end_in_order(
    stray: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = stray("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('set', flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert process.stdout.readline() == "set\n"
    process.terminate()
    assert process.wait(30) == 7
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_does_not_hear_is_ended(
    stray: Callable[..., subprocess.Popen[str]], tmp_path: Path, ending: signal.Signals
) -> None:
    process = stray(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); print('set', flush=True); time.sleep(60)", "--grace=1"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "set\n"
    process.send_signal(ending)
    assert process.wait(30) == 137
    assert nothing_left(tmp_path)


def test_when_the_starter_is_gone_the_command_is_ended(
    stray: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = stray("time.sleep(60)")
    assert process.stdin is not None
    process.stdin.close()  # as the kernel does for a process that was killed
    assert process.wait(30) == 143
    assert nothing_left(tmp_path)


def test_the_command_ends_with_its_guard(stray: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    process = stray(
        "open(sys.argv[2] + '.main', 'w').write(str(os.getpid())); print('set', flush=True); time.sleep(60)"
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait(30)
    pid = int((tmp_path / "pid.main").read_text())
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}") and not guard.is_zombie(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}") or guard.is_zombie(pid)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)  # the one thing that a killed guard leaves


def test_shared_memory_that_somebody_else_uses_stays(
    stray: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = stray("time.sleep(1)")
    with open(f"/dev/shm/{shm_name(tmp_path)}", "rb"):
        process.wait(30)
        assert os.path.exists(f"/dev/shm/{shm_name(tmp_path)}")


def test_the_scratch_folder_is_removed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = [sys.executable, "-c", "import sys; open(sys.argv[1] + '/x', 'w')", str(scratch)]
    assert guarded(f"--scratch={scratch}", "--", *command)[0] == 0
    assert not scratch.exists()


def test_a_command_that_does_not_exist_is_named() -> None:
    assert guarded("--", "/no/such/program") == (
        guard.CANNOT_START,
        "error: /no/such/program: No such file or directory\n",
    )


def guarded(*arguments: str) -> tuple[int, str]:
    """Exit code and stderr, with stdin held open."""
    command = [sys.executable, "-I", "-S", guard.__file__, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        code = process.wait(30)
        assert process.stderr is not None
        return code, process.stderr.read()
