"""Waiting for the end of a run: reading its output as it comes, and looking at what its tree uses."""

import os
import select
import socket
import time
from dataclasses import dataclass

from verl_tool.tool_server.sandbox import tree
from verl_tool.tool_server.sandbox.capture import Capture
from verl_tool.tool_server.sandbox.limits import Limits
from verl_tool.tool_server.sandbox.result import Ending

LOOK_EVERY = 0.05  # seconds between looks at what the tree uses
REST = 0.002  # after a small read: many small prints are then read together
CORES = len(os.sched_getaffinity(0))


@dataclass
class Watch:
    """One run, from the moment it was forked."""

    pid: int
    limits: Limits
    started: float
    channel: socket.socket  # the server says nothing during a run, so that whatever comes is its end
    out: Capture
    err: Capture

    def until_over(self) -> Ending:
        process = os.pidfd_open(self.pid)
        try:
            return self._wait(process)
        finally:
            os.close(process)

    def _wait(self, process: int) -> Ending:
        captures = {capture.read_end: capture for capture in (self.out, self.err)}
        signs, everything = select.poll(), select.poll()  # signs are those of an end
        for poller in (signs, everything):
            poller.register(process, select.POLLIN)
            poller.register(self.channel, select.POLLIN | select.POLLRDHUP)
        for descriptor in captures:
            everything.register(descriptor, select.POLLIN)
        look_at, resting = self.started + LOOK_EVERY, False
        while True:
            wait = max(0.0, look_at - time.monotonic())
            events = dict(signs.poll(1000 * min(wait, REST)) if resting else everything.poll(1000 * wait))
            resting = False
            if self.channel.fileno() in events:
                return Ending.CANCELLED
            if process in events:
                return Ending.EXITED
            for descriptor in events.keys() & captures.keys():
                resting |= captures[descriptor].take() < 4096
                if not captures[descriptor].open:
                    everything.unregister(descriptor)
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
        most = self.limits.memory_bytes
        if use.resident_bytes > most and tree.proportional_bytes(use.pids) > most:
            return Ending.MEMORY_LIMIT
        return None
