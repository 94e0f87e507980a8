"""The forked child: becomes the limited process and runs the code as `python main.py` would."""

import atexit
import builtins
import io
import linecache
import os
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable
from typing import NoReturn

FILENAME = "main.py"  # as tracebacks name it; there is no such file
SETUP_DESCRIPTOR = 3  # open until the child is confined: the supervisor hears of a failure through it

Confine = Callable[[], None]


def enter(directory: str, stdin: int, stdout: int, stderr: int, setup: int, confine: Confine) -> None:
    """Leaves everything of the server behind: descriptors, session, signals, environment, privileges."""
    os.setsid()
    for target, source in enumerate((stdin, stdout, stderr, setup)):
        os.dup2(source, target)
    os.closerange(SETUP_DESCRIPTOR + 1, 1 << 20)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(0o077)
    os.chdir(directory)
    _set_environment(directory)
    confine()
    os.close(SETUP_DESCRIPTOR)


def execute(code: str) -> NoReturn:
    """Runs the code as `__main__` and ends the process as an interpreter would."""
    _fresh_interpreter_state()
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    linecache.cache[FILENAME] = (len(code), None, code.splitlines(keepends=True), FILENAME)
    status = _run(code, main.__dict__)
    status = _wind_up(main.__dict__) or status
    os._exit(status)


def _run(code: str, namespace: dict[str, object]) -> int:
    try:
        compiled = compile(code, FILENAME, "exec", dont_inherit=True)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown
        return _report(error.with_traceback(None))
    try:
        exec(compiled, namespace)  # noqa: S102 - what this process is for
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown
        own_frame = error.__traceback__
        return _report(error.with_traceback(own_frame.tb_next if own_frame else None))
    return 0


def _report(error: BaseException) -> int:
    """Prints what Python prints when this error reaches the top; gives the exit status."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)
        return 1
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except BaseException:  # noqa: BLE001 - the snippet's own hook
        traceback.print_exception(error)
    return 1


def _wind_up(namespace: dict[str, object]) -> int:
    """What an interpreter does at its end: waits for threads, runs exit handlers, flushes."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        namespace.clear()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except BaseException as error:  # noqa: BLE001 - an exit handler of the snippet
        return _report(error)
    return 0


def _fresh_interpreter_state() -> None:
    sys.argv = [FILENAME]
    sys.path[:] = ["", *sys.path]
    sys.excepthook = lambda kind, error, trace: traceback.print_exception(kind, error, trace)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")  # type: ignore[misc]
    # Unbuffered: what was printed before a time limit is part of the answer.
    sys.stdout = sys.__stdout__ = _writer(1, "strict")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace")  # type: ignore[misc]
    if "numpy" in sys.modules:  # preloaded: every run would draw the same numbers
        sys.modules["numpy"].random.seed()


def _writer(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)


def _set_environment(directory: str) -> None:
    os.environ.clear()
    os.environ.update(
        PATH=os.pathsep.join((os.path.dirname(sys.executable), "/usr/local/bin", "/usr/bin", "/bin")),
        HOME=directory,
        TMPDIR=directory,
        LANG="C.UTF-8",
        PYTHONUTF8="1",
        PYTHONDONTWRITEBYTECODE="1",
        OMP_NUM_THREADS="1",
        OPENBLAS_NUM_THREADS="1",
        MPLBACKEND="agg",
    )
