"""The warm interpreter: a process started once, without the server's environment, that forks a supervisor for each run.

Single-threaded; imports what most snippets import, so that a run costs two forks and not an interpreter start.
"""

import contextlib
import gc
import importlib
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback

from verl_tool.tool_server.sandbox import kernel, supervisor, tree
from verl_tool.tool_server.sandbox.identity import Identities

READY = b"ready"


def main(control_descriptor: int, base: str, preload: list[str]) -> None:
    """Forks a supervisor for each channel that comes in through the control socket, until that closes."""
    control = socket.socket(fileno=control_descriptor)
    control.setblocking(True)
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # a preloaded numpy must not start threads
    for module in preload:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - a module's own code
            control.sendall(f"cannot preload module {module!r}: {type(error).__name__}: {error}".encode()[:4000])
            return
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    identities = Identities.detect()
    children = _Children()
    for name in [name for name in sys.modules if name.partition(".")[0] == "verl_tool"]:
        del sys.modules[name]  # a snippet sees an interpreter, not a server
    gc.collect()
    gc.freeze()
    control.sendall(READY)
    while (channel := children.next_channel(control)) is not None:
        children.fork(channel, control, base, identities)
    children.finish()
    shutil.rmtree(base, ignore_errors=True)


class _Children:
    """The supervisors that run now, and what a supervisor that was killed has left behind."""

    def __init__(self) -> None:
        self.supervisors: set[int] = set()
        self.wakeup, wakeup_writer = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(wakeup_writer, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        self.wakeup_writer = wakeup_writer
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def next_channel(self, control: socket.socket) -> socket.socket | None:
        """Waits for the server's next run, taking in ended supervisors meanwhile; None when the server is gone."""
        poller = select.poll()
        poller.register(control, select.POLLIN)
        poller.register(self.wakeup, select.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self.wakeup in ready:
                self.reap()
            if control.fileno() in ready:
                data, descriptors, _, _ = socket.recv_fds(control, 1, 1)
                if not data:
                    return None
                if descriptors:
                    return socket.socket(fileno=descriptors[0])

    def fork(self, channel: socket.socket, control: socket.socket, base: str, identities: Identities) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                os.close(self.wakeup)
                os.close(self.wakeup_writer)
                supervisor.supervise(channel, base, identities)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - nothing may come back from the forked child
                traceback.print_exc()
            finally:
                os._exit(1)
        channel.close()
        self.supervisors.add(pid)

    def reap(self) -> None:
        """Takes in the dead. A supervisor that did not end well leaves its run to us: that is ended here."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wakeup, 4096):
                pass
        orphaned = False
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                orphaned |= ended[0] not in self.supervisors or ended[1] != 0
                self.supervisors.discard(ended[0])
        if orphaned:
            tree.end(frozenset(self.supervisors))

    def finish(self) -> None:
        """Lets the supervisors, which see that the server is gone, end their runs; then ends whatever is left."""
        until = time.monotonic() + 1.5
        while self.supervisors and time.monotonic() < until:
            self.reap()
            time.sleep(0.01)
        tree.end()
