"""What the loop needs of an inference engine: tokens in, tokens out. No engine is implemented here."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

TokenId = int


class EngineFinish(StrEnum):
    """Why the engine ended a generation, in the engine's own word; never guessed from the last token."""

    STOP = "stop"  # an end token or a stop string
    LENGTH = "length"  # max_tokens, or the model's context
    ABORT = "abort"  # the engine gave the request up


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation: what was sampled, and what the engine says of it."""

    token_ids: Sequence[TokenId]
    log_probs: Sequence[float]  # of token_ids, under the distribution that was sampled from
    finish: EngineFinish
    weights_version: int | None = None  # global step of the weights that sampled it
    num_preempted: int = 0


class Engine(Protocol):
    """An asynchronous engine; several generations may be under way at once."""

    async def generate(
        self, *, request_id: str, prompt_ids: Sequence[TokenId], sampling_params: dict[str, Any]
    ) -> Generation:
        """Samples from `prompt_ids`. `request_id` is new for every call.

        `sampling_params` are vLLM's names, `max_tokens` (at least 1), `stop`, `stop_token_ids` among them.
        Raises whatever the engine raises: the caller ends that one trajectory.
        """
        ...
