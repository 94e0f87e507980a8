"""One run's supervisor: a small process between the server and the snippet that holds the limits.

It is a subreaper, so the snippet's whole tree stays below it, and it ends that tree when the snippet ends, at a limit,
or when the server closes the channel (the client went away, or the server itself is gone).
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from typing import NoReturn

from verl_tool.tool_server.sandbox import frames, kernel, snippet, tree
from verl_tool.tool_server.sandbox.capture import Capture
from verl_tool.tool_server.sandbox.identity import Identities
from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending, RunResult

FIRST_LOOK, LOOK_EVERY = 0.01, 0.05  # seconds between looks at what the tree uses
CORES = len(os.sched_getaffinity(0))
REST = 0.002  # after a small read: many small prints are then read together


def supervise(channel: socket.socket, base: str, identities: Identities) -> None:
    """Serves the one request on this channel."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    os.setsid()
    channel.sendall(frames.PREFIX.pack(os.getpid()))
    try:
        code, stdin, limits, slot = frames.unpack_request(frames.read(channel))
    except EOFError:
        return  # cancelled before it began
    directory = tempfile.mkdtemp(prefix="run-", dir=base)
    try:
        result = _run(code, stdin, limits, slot, directory, channel, identities)
    except OSError as error:
        result = RunResult(ending=Ending.FAILED, reason=f"the sandbox could not start the run: {error}")
    finally:
        ended = tree.end()
        _remove(directory)
    if not ended:
        result = replace(result, ending=Ending.FAILED, reason="a process of the run could not be ended")
    with contextlib.suppress(OSError):  # the client is gone
        channel.sendall(frames.pack_result(result))


def _run(
    code: str,
    stdin: str | None,
    limits: Limits,
    slot: int,
    directory: str,
    channel: socket.socket,
    identities: Identities,
) -> RunResult:
    out, err, setup = Capture(limits.output_bytes), Capture(limits.output_bytes), Capture(4096)
    source = _stdin_file(stdin)
    identities.give(slot, directory, source, out.write_end, err.write_end)
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become_snippet(code, directory, source, out, err, setup, lambda: identities.assume(slot, limits))
    for descriptor in (source, out.write_end, err.write_end, setup.write_end):
        os.close(descriptor)
    ending = _Watch(pid, limits, started, channel, out, err).until_over()
    seconds = time.monotonic() - started
    status = _status_of(pid, ending)
    tree.end()
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


@dataclass
class _Watch:
    """Waits for the end of a run, reading its output and looking at what it uses."""

    pid: int
    limits: Limits
    started: float
    channel: socket.socket
    out: Capture
    err: Capture

    def until_over(self) -> Ending:
        process = os.pidfd_open(self.pid)
        signs = select.poll()  # of an end
        signs.register(process, select.POLLIN)
        signs.register(self.channel, select.POLLIN | select.POLLRDHUP)
        everything = select.poll()
        everything.register(process, select.POLLIN)
        everything.register(self.channel, select.POLLIN | select.POLLRDHUP)
        captures = {capture.read_end: capture for capture in (self.out, self.err)}
        for descriptor in captures:
            everything.register(descriptor, select.POLLIN)
        look_at, resting = self.started + FIRST_LOOK, False
        while True:
            wait = max(0.0, look_at - time.monotonic())
            events = dict((signs if resting else everything).poll(1000 * min(wait, REST) if resting else 1000 * wait))
            resting = False
            if self.channel.fileno() in events:
                return Ending.CANCELLED
            for descriptor in events.keys() & captures.keys():
                resting |= captures[descriptor].take() < 4096
                if not captures[descriptor].open:
                    everything.unregister(descriptor)
            if process in events:
                return Ending.EXITED
            now = time.monotonic()
            if now >= look_at:
                if (limit := self._limit_reached(now)) is not None:
                    return limit
                look_at = now + LOOK_EVERY

    def _limit_reached(self, now: float) -> Ending | None:
        use = tree.survey(self.limits.processes)
        if use.tasks > self.limits.processes:
            return Ending.PROCESS_LIMIT
        elapsed = now - self.started
        if elapsed >= self.limits.wall_seconds:
            return Ending.TIME_LIMIT
        if elapsed >= self.limits.seconds:
            crowded = use.tasks > CORES  # by its own threads and processes: that wait is its own affair
            if crowded or elapsed - tree.waited_for_core(self.pid) >= self.limits.seconds:
                return Ending.TIME_LIMIT
        if use.cpu_seconds >= self.limits.cpu_seconds:
            return Ending.CPU_LIMIT
        if (
            use.resident_bytes > self.limits.memory_bytes
            and tree.proportional_bytes(use.pids) > self.limits.memory_bytes
        ):
            return Ending.MEMORY_LIMIT
        return None


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


def _stdin_file(text: str | None) -> int:
    """A descriptor that gives this text, or nothing at all; never one that can be waited on."""
    if not text:
        return os.open(os.devnull, os.O_RDONLY)
    descriptor = os.memfd_create("stdin")
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(text.encode())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


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
