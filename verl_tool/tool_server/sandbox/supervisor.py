"""A run's supervisor: a small process between the server and the snippet that holds the limits.

It is a subreaper, so the snippet's whole tree stays below it, and it ends that tree when the snippet ends, at a limit,
or when the server closes the channel (the client went away, or the server itself is gone). It serves one run after
another; a run that was given up takes its supervisor with it.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import NoReturn

from verl_tool.tool_server.sandbox import frames, kernel, snippet, tree
from verl_tool.tool_server.sandbox.capture import Capture
from verl_tool.tool_server.sandbox.identity import Identities
from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult
from verl_tool.tool_server.sandbox.watch import Watch


def supervise(channel: socket.socket, base: str, identities: Identities) -> None:
    """Serves the requests on this channel until it closes. Raises when a process of a run could not be ended."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    os.setsid()
    channel.sendall(frames.PREFIX.pack(os.getpid()))
    with contextlib.suppress(EOFError, ConnectionError):  # the server has closed the channel
        while True:
            code, stdin, limits, slot = frames.unpack_request(frames.read(channel))
            directory = tempfile.mkdtemp(prefix="run-", dir=base)
            try:
                result = _run(code, stdin, limits, slot, directory, channel, identities)
            finally:
                _remove(directory)
            channel.sendall(frames.pack_result(result))
            if result.ending is Ending.CANCELLED:
                return


def _run(
    code: str,
    stdin: str | None,
    limits: Limits,
    slot: int,
    directory: str,
    channel: socket.socket,
    identities: Identities,
) -> RunResult:
    with contextlib.ExitStack() as stack:
        out, err = (stack.enter_context(Capture(limits.output_bytes)) for _ in range(2))
        setup = stack.enter_context(Capture(4096))
        with _stdin_file(stdin) as source:
            identities.give(slot, directory, source, out.write_end, err.write_end)
            started = time.monotonic()
            pid = os.fork()
            if pid == 0:
                _become_snippet(code, directory, source, out, err, setup, lambda: identities.assume(slot, limits))
        for capture in (out, err, setup):
            capture.close_write_end()
        ending = Watch(pid, limits, started, channel, out, err).until_over()
        seconds = time.monotonic() - started
        status = _status_of(pid, ending)
        if not tree.end():
            raise RuntimeError("a process of the run could not be ended")
        for capture in (out, err, setup):
            capture.drain()
        if setup.kept:
            return RunResult(ending=Ending.FAILED, reason=setup.kept.decode("utf-8", "replace"))
        signalled = os.WIFSIGNALED(status)
        return RunResult(
            ending=Ending.SIGNALLED if ending is Ending.EXITED and signalled else ending,
            stdout=bytes(out.kept),
            stderr=bytes(err.kept),
            stdout_dropped=out.dropped,
            stderr_dropped=err.dropped,
            exit_code=0 if signalled else os.WEXITSTATUS(status),
            signal=os.WTERMSIG(status) if signalled else 0,
            seconds=seconds,
        )


def _become_snippet(
    code: str, directory: str, source: int, out: Capture, err: Capture, setup: Capture, confine: snippet.Confine
) -> NoReturn:
    try:
        try:
            snippet.enter(directory, source, out.write_end, err.write_end, setup.write_end, confine)
        except BaseException as error:  # noqa: BLE001 - nothing may come back from the forked child
            os.write(snippet.SETUP_DESCRIPTOR, f"the sandbox could not confine the run: {error!r}".encode()[:4096])
            os._exit(1)
        snippet.execute(code)
    finally:
        os._exit(1)


def _status_of(pid: int, ending: Ending) -> int:
    """The wait status of the snippet's first process; it and its process group are ended here.

    One signal to the group stops what forks without end faster than a walk over its processes could.
    """
    if ending is not Ending.EXITED:
        os.kill(pid, signal.SIGKILL)  # for the time before it has a group
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


@contextlib.contextmanager
def _stdin_file(text: str | None) -> Iterator[int]:
    """A descriptor that gives this text, or nothing at all; never one that can be waited on."""
    descriptor = os.memfd_create("stdin") if text else os.open(os.devnull, os.O_RDONLY)
    try:
        if text:
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(text.encode())
            os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _remove(directory: str) -> None:
    """Removes a run's directory, whatever the run has put there."""
    try:
        os.rmdir(directory)  # the usual case: nothing was written
        return
    except OSError:
        pass
    try:
        shutil.rmtree(directory)
    except (OSError, RecursionError):
        subprocess.run(["chmod", "-R", "u+rwx", "--", directory], stderr=subprocess.DEVNULL, timeout=60, check=False)
        subprocess.run(["rm", "-rf", "--", directory], stderr=subprocess.DEVNULL, timeout=60, check=False)
