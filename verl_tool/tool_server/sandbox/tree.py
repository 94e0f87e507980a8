"""A look at, and an end to, all the descendants of this process, through /proc.

The caller is a subreaper, so a descendant that double-forks or starts a session of its own is still below it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Use:
    """What the descendants use together."""

    pids: tuple[int, ...]
    tasks: int  # threads; a process is at least one
    cpu_seconds: float
    resident_bytes: int  # pages that processes share are counted once for each


def survey(most_tasks: int) -> Use:
    """Resources of the living descendants and of the children they waited for; counts no further than `most_tasks`."""
    pids, tasks, cpu, resident = [], 0, 0, 0
    for pid in descendants():
        fields = _stat(pid)
        if fields is None or fields[0] == b"Z":
            continue
        pids.append(pid)
        cpu += sum(int(fields[index]) for index in (11, 12, 13, 14))
        tasks += int(fields[17])
        resident += int(fields[21]) * PAGE
        if tasks > most_tasks:
            break
    return Use(tuple(pids), tasks, cpu / TICKS, resident)


def proportional_bytes(pids: tuple[int, ...]) -> int:
    """Memory of these processes with shared pages divided among their users; slower than `survey`."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except (OSError, StopIteration):
            continue
    return total


def waited_for_core(pid: int) -> float:
    """Seconds this process's first thread was ready to run but had no core; 0 where the kernel does not say."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def descendants(of: int | None = None) -> Iterator[int]:
    """Every process below `of` (this process), nearest first."""
    pending = _children(os.getpid() if of is None else of)
    while pending:
        pid = pending.pop()
        yield pid
        pending += _children(pid)


def end(spare: frozenset[int] = frozenset(), *, within: float = 5.0) -> bool:
    """Kills and reaps all descendants but the `spare` children and theirs; False if that takes longer than `within`.

    Zombies are only reaped once nothing lives: an unreaped zombie holds its place under the process limit, so that
    a snippet that forks without end gets no new place while it is being killed.
    """
    if not spare and not _has_children():
        return True
    until = time.monotonic() + within
    while True:
        found = [pid for child in _children(os.getpid()) if child not in spare for pid in (child, *descendants(child))]
        if not found:
            return True
        if time.monotonic() > until:
            return False
        for pid in found:
            _kill(pid)
        if any((fields := _stat(pid)) is not None and fields[0] != b"Z" for pid in found):
            time.sleep(0.0005)
        else:
            _reap(found)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue  # its parent was killed just now; it becomes ours


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it ended while we looked
    return found


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/PID/stat from the state on; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None
