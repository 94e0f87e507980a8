"""What a person is told when a run ends by a fault: the fault itself, dug out from where Ray wrapped it."""

import errno
from collections.abc import Iterator

from verl_tool.errors import RunError, VerlToolError

# torch's and safetensors' words for a write that found no room; neither raises an OSError.
_NO_ROOM = ("No space left on device", "PytorchStreamWriter failed writing file", "unexpected pos")


def told(fault: BaseException) -> VerlToolError | None:
    """The VerlToolError at the bottom of `fault`, None when there is none: then the traceback is what tells most."""
    for one in chain(fault):
        if isinstance(one, VerlToolError):
            return one
        if is_no_room(one):
            where = f" {one.filename}:" if isinstance(one, OSError) and one.filename else ""
            return RunError(
                f"{where} the disk of the run's folder is full; make room, then go on with --resume".strip()
            )
    return None


def chain(fault: BaseException) -> Iterator[BaseException]:
    """The fault and what lies behind it. Of a RayTaskError only its cause: its text is a remote traceback."""
    seen: set[int] = set()
    current: BaseException | None = fault
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        inner = getattr(current, "cause", None)
        if isinstance(inner, BaseException):
            current = inner
            continue
        yield current
        current = current.__cause__ or current.__context__


def is_no_room(fault: BaseException) -> bool:
    """Whether a write failed for want of room."""
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return isinstance(fault, Exception) and any(words in str(fault) for words in _NO_ROOM)
