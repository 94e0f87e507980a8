"""What a person is told when a run ends by a fault: the fault itself, dug out from where Ray wrapped it."""

from verl_tool.errors import VerlToolError


def told(fault: BaseException) -> VerlToolError | None:
    """The VerlToolError at the bottom of `fault`, None when there is none: then the traceback is what tells most."""
    seen: set[int] = set()
    current: BaseException | None = fault
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        inner = getattr(current, "cause", None)  # of a RayTaskError, whose text is a remote traceback
        if isinstance(inner, BaseException):
            current = inner
            continue
        if isinstance(current, VerlToolError):
            return current
        current = current.__cause__ or current.__context__
    return None
