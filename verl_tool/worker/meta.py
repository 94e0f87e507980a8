"""The metaclass that lets a worker name verl's Worker beside a class which already derives from it."""

from typing import Any


class AgentActorRolloutRefWorkerMeta(type):
    """Drops a base that another base already has, and calls `__agent_init__` once `__init__` is through.

    Python refuses the bases `(Worker, ActorRolloutRefWorker)` where the second derives from the first, since no order
    of them satisfies both. Only the first is redundant, so it goes.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any
    ) -> "AgentActorRolloutRefWorkerMeta":
        return super().__new__(mcs, name, without_redundant(bases), namespace, **kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(name, without_redundant(bases), namespace, **kwargs)

    def __call__(cls, config: Any, role: str, *args: Any, **kwargs: Any) -> Any:
        worker = super().__call__(config, role, *args, **kwargs)
        worker.__agent_init__(config, role)
        return worker


def without_redundant(bases: tuple[type, ...]) -> tuple[type, ...]:
    """The bases that no other of them derives from, in their order."""
    return tuple(base for base in bases if not any(other is not base and issubclass(other, base) for other in bases))
