"""As whom a snippet runs: a user id of its own where the server may choose one, and never with privileges.

A user id for each slot makes the kernel count processes for each run alone, and keeps a run from signalling others.
Without it (the server is no root) the kernel counts all of the user's processes, those of other containers too, so
that its limit must be a wide one, and the supervisor's count of the run's own tree holds the exact one.
"""

import os
import resource
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from verl_tool.tool_server.sandbox import kernel
from verl_tool.tool_server.sandbox.limits import Limits

SPARE_FACTOR = 2  # the wide limit, in runs of the largest size
FIRST_USER_ID = 50_000  # below the ids that systemd hands out, above those of people


@dataclass(frozen=True)
class Identities:
    """What the process that forks the runs is allowed to do about their user ids."""

    own_user: bool  # each slot has a user id of its own
    interpreter_is_private: bool  # e.g. under /root: a run must then be let through to its standard library
    tasks_before: int = 0  # threads that the kernel counts for our user already, also those in other containers

    @classmethod
    def detect(cls) -> "Identities":
        may = os.geteuid() == 0 and kernel.has_capabilities(kernel.CAP_CHOWN, kernel.CAP_SETGID, kernel.CAP_SETUID)
        if not may:
            return cls(own_user=False, interpreter_is_private=False, tasks_before=_tasks_of_our_user())
        return cls(
            own_user=may,
            interpreter_is_private=not _open_to_all(Path(os.__file__)) or not _open_to_all(Path(sys.executable)),
        )

    def give(self, slot: int, *things: str | int) -> None:
        """Gives a run's directory and streams to the user it will run as."""
        if self.own_user:
            for thing in things:
                os.chown(thing, FIRST_USER_ID + slot, FIRST_USER_ID + slot)

    def assume(self, slot: int, limits: Limits) -> None:
        """Called in the forked child: limits first, then the privileges that could lift them are given up."""
        _set_limits(limits)
        if self.own_user:
            user = FIRST_USER_ID + slot
            resource.setrlimit(resource.RLIMIT_NPROC, (limits.processes, limits.processes))
            os.setgroups([])
            os.setresgid(user, user, user)
            if self.interpreter_is_private:
                kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
            os.setresuid(user, user, user)
            if self.interpreter_is_private:
                kernel.keep_only_capability(kernel.CAP_DAC_READ_SEARCH)
        else:
            most = self.tasks_before + SPARE_FACTOR * limits.processes
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
            kernel.drop_all_capabilities()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # /dev/stdout and the like open through /proc/self


def _tasks_of_our_user() -> int:
    """How many threads count against our user's limit; found by trying, as /proc hides those of other containers."""
    low, high = 1, 1 << 16
    while low < high:
        middle = (low + high) // 2
        if _can_fork_under(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _can_fork_under(limit: int) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
            if os.fork() == 0:
                os._exit(0)
            os.wait()
            os._exit(0)
        except (OSError, ValueError):
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _set_limits(limits: Limits) -> None:
    cpu = int(limits.cpu_seconds) + 1  # whole seconds; the supervisor holds the exact limit
    for which, value in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _open_to_all(path: Path) -> bool:
    """Whether any user may read this file and pass the folders above it."""
    real = path.resolve()
    return bool(real.stat().st_mode & stat.S_IROTH) and all(p.stat().st_mode & stat.S_IXOTH for p in real.parents)
