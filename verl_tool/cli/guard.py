"""`python guard.py [--scratch DIR] [--grace S] -- COMMAND…`: runs one command, and leaves nothing of it behind.

However the command ends, and however whoever started this ends (even by SIGKILL, seen by the end of stdin), every
process that came of the command is ended, wherever it has put itself; the files it left in /dev/shm and the scratch
folder are removed. A process of its own and standard library only: small, quick, and alive longer than what it guards.
"""

import argparse
import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SHM = "/dev/shm/"
LOOK = 2.0  # seconds between two looks at which shared memory is in use
TERM_SECONDS = 5.0  # that leftovers have between SIGTERM and SIGKILL
KILL_SECONDS = 10.0
CANNOT_START = 127


def main(arguments: list[str] | None = None) -> int:
    """The exit code of the command, as a shell would give it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scratch", type=Path)
    parser.add_argument("--grace", type=float, default=30.0, help="seconds between SIGTERM and SIGKILL for the command")
    parser.add_argument("--sweep", type=float, default=TERM_SECONDS, help="the same for what the command leaves behind")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the command come to us, not to init
    shared = SharedMemory()
    try:
        return Guard(options.command, options.grace, shared, libc).run()
    finally:
        end_all(shared, options.sweep)
        shared.remove_unused()
        if options.scratch is not None:
            shutil.rmtree(options.scratch, ignore_errors=True)


class Guard:
    """The command, from its start to its end."""

    def __init__(self, command: list[str], grace: float, shared: "SharedMemory", libc: ctypes.CDLL) -> None:
        self._command, self._grace, self._shared, self._libc = command, grace, shared, libc
        self._deadline: float | None = None
        self._wake, wake_write = os.pipe()
        for end in (self._wake, wake_write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake_write)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, self._on_signal)
        self._pid = 0

    def run(self) -> int:
        ours = os.getpid()

        def tied_to_us() -> None:
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != ours:
                os._exit(1)

        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=tied_to_us
            )
        except OSError as fault:
            print(f"error: {self._command[0]}: {fault.strerror}", file=sys.stderr)
            return CANNOT_START
        self._pid = process.pid
        lifeline = [sys.stdin.fileno()]
        while True:
            ready, _, _ = select.select([*lifeline, self._wake], [], [], LOOK)
            if self._wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            if lifeline and lifeline[0] in ready and not os.read(lifeline[0], 4096):
                lifeline = []  # whoever started us has gone
                self._stop(min(self._grace, TERM_SECONDS))
            for pid, status in reap():
                if pid == self._pid:
                    code = os.waitstatus_to_exitcode(status)
                    process.returncode = code
                    return code if code >= 0 else 128 - code
            self._shared.look()
            if self._deadline is not None and time.monotonic() >= self._deadline:
                self._send(signal.SIGKILL)

    def _on_signal(self, number: int, frame: object) -> None:
        if number == signal.SIGTERM:
            self._stop(self._grace)
        elif number == signal.SIGINT:  # at once
            self._deadline = time.monotonic()

    def _stop(self, grace: float) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + grace
            self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        if self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)


class SharedMemory:
    """The files in /dev/shm that processes of ours had in use."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._next = 0.0

    def look(self, *, now: bool = False) -> None:
        """Notes what our processes have mapped or open."""
        if now or time.monotonic() >= self._next:
            self._next = time.monotonic() + LOOK
            self._seen.update(path for pid in descendants() for path in in_use(pid))

    def remove_unused(self) -> None:
        """Removes the ones left over that no living process has in use."""
        left = {path for path in self._seen if os.path.exists(path) and os.stat(path).st_uid == os.getuid()}
        if left:
            left.difference_update(path for pid in processes() for path in in_use(pid))
        for path in left:
            with contextlib.suppress(OSError):
                os.unlink(path)


def end_all(shared: SharedMemory, term_seconds: float) -> None:
    """Ends every process that came of ours: SIGTERM, then SIGKILL, again until none is left."""
    shared.look(now=True)
    for number, seconds in ((signal.SIGTERM, term_seconds), (signal.SIGKILL, KILL_SECONDS)):
        deadline = time.monotonic() + seconds
        told: set[int] = set()
        while time.monotonic() < deadline:
            for _ in reap():
                pass
            left = [pid for pid in descendants() if not is_zombie(pid)]
            if not left:
                break
            for pid in left:
                if number == signal.SIGKILL or pid not in told:
                    told.add(pid)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
            time.sleep(0.05)


def reap() -> Iterator[tuple[int, int]]:
    """The children that have ended, with their status."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def descendants() -> list[int]:
    """All processes that came of this one."""
    children: dict[int, list[int]] = {}
    for pid in processes():
        if (fields := _stat(pid)) is not None:
            children.setdefault(int(fields[1]), []).append(pid)
    found, pending = [], [os.getpid()]
    while pending:
        next_ones = children.get(pending.pop(), [])
        found += next_ones
        pending += next_ones
    return found


def processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_zombie(pid: int) -> bool:
    fields = _stat(pid)
    return fields is None or fields[0] == "Z"


def in_use(pid: int) -> set[str]:
    """The files in /dev/shm that a process has mapped or open."""
    found: set[str] = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        found.update(line[line.index(SHM) :].rstrip("\n") for line in maps if SHM in line)
    with contextlib.suppress(OSError):
        for number in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{number}"))
    return {path for path in found if path.startswith(SHM) and not path.endswith(" (deleted)")}


def _stat(pid: int) -> list[str] | None:
    """State, parent, … of a process: what /proc/PID/stat has behind the name."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
