"""The metaclass of the worker."""

from typing import Any

import pytest

from verl_tool.worker.meta import AgentActorRolloutRefWorkerMeta, without_redundant


class Root:
    pass


class Derived(Root):
    def __init__(self, config: str, role: str, extra: int = 0) -> None:
        self.calls: list[tuple[object, ...]] = [("init", config, role, extra)]


class Other:
    pass


def test_plain_python_refuses_the_bases_that_the_metaclass_accepts() -> None:
    with pytest.raises(TypeError, match="consistent method resolution"):
        type("Refused", (Root, Derived), {})

    accepted = AgentActorRolloutRefWorkerMeta("Accepted", (Root, Derived), {})

    assert accepted.__mro__[1:3] == (Derived, Root)


def test_only_bases_that_another_base_already_has_are_dropped() -> None:
    assert without_redundant((Root, Derived, Other)) == (Derived, Other)
    assert without_redundant((Root, Other)) == (Root, Other)
    assert without_redundant((Derived, Root)) == (Derived,)


def test_agent_init_is_called_once_behind_init_also_through_a_subclass() -> None:
    def agent_init(self: Derived, config: str, role: str) -> None:
        self.calls.append(("agent_init", config, role))

    # Called rather than written as a class statement: mypy, which refuses these bases too, knows no such metaclass.
    worker: Any = AgentActorRolloutRefWorkerMeta("Worker", (Root, Derived), {"__agent_init__": agent_init})
    wrapped: Any = AgentActorRolloutRefWorkerMeta("Wrapped", (worker,), {})  # as ray.remote does

    expected = [("init", "config", "actor", 3), ("agent_init", "config", "actor")]
    assert worker("config", role="actor", extra=3).calls == expected
    assert wrapped(config="config", role="actor", extra=3).calls == expected
