"""The tokens of one row as sampled or put there, with mask and log-probabilities: by position, never by id."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from verl_tool.llm_agent.engine import TokenId
from verl_tool.llm_agent.record import SegmentKind


class Span(NamedTuple):
    """A stretch of the response, `start` inclusive and `stop` exclusive, that has one origin."""

    kind: SegmentKind
    start: int
    stop: int


@dataclass(slots=True)
class TokenStream:
    """A prompt and what follows it. Only sampled tokens have log-probabilities; all others carry 0.0."""

    prompt: list[TokenId]
    response: list[TokenId] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)  # as long as response
    spans: list[Span] = field(default_factory=list)  # adjacent, together the whole response

    def context(self) -> list[TokenId]:
        """The engine's next prompt: all tokens so far, exactly."""
        return self.prompt + self.response

    def add_sampled(self, token_ids: Sequence[TokenId], log_probs: Sequence[float]) -> None:
        """Appends what the engine sampled. Raises ValueError when the log-probabilities are not one a token."""
        if len(token_ids) != len(log_probs):
            raise ValueError(f"engine gave {len(token_ids)} tokens but {len(log_probs)} log-probabilities")
        self.log_probs.extend(log_probs)
        self._extend(SegmentKind.SAMPLED, token_ids)

    def add_observation(self, token_ids: Sequence[TokenId]) -> None:
        """Appends an observation of the tool."""
        self.log_probs.extend([0.0] * len(token_ids))
        self._extend(SegmentKind.OBSERVATION, token_ids)

    def add_forced(self, token_ids: Sequence[TokenId]) -> None:
        """Appends what the loop itself puts there, e.g. the end token of a turn that a stop string ended."""
        self.log_probs.extend([0.0] * len(token_ids))
        self._extend(SegmentKind.FORCED, token_ids)

    def trained_spans(self, *, train_on_observations: bool) -> list[Span]:
        """The stretches that get loss: what was sampled, observations if asked for, never what the loop put there."""
        kinds = {SegmentKind.SAMPLED} | ({SegmentKind.OBSERVATION} if train_on_observations else set())
        return [span for span in self.spans if span.kind in kinds]

    def loss_mask(self, *, train_on_observations: bool) -> list[bool]:
        """One flag a response token: whether it gets loss."""
        mask = [False] * len(self.response)
        for _, start, stop in self.trained_spans(train_on_observations=train_on_observations):
            mask[start:stop] = [True] * (stop - start)
        return mask

    def sampled_count(self) -> int:
        """Tokens the engine sampled."""
        return sum(stop - start for kind, start, stop in self.spans if kind is SegmentKind.SAMPLED)

    def last_sampled_position(self) -> int | None:
        """Index in the response of the newest sampled token, None when there is none."""
        return next((span.stop - 1 for span in reversed(self.spans) if span.kind is SegmentKind.SAMPLED), None)

    def spans_of(self, kind: SegmentKind) -> Iterator[Sequence[TokenId]]:
        """The stretches of one origin, in order."""
        return (self.response[span.start : span.stop] for span in self.spans if span.kind is kind)

    def _extend(self, kind: SegmentKind, token_ids: Sequence[TokenId]) -> None:
        if not token_ids:
            return
        start = len(self.response)
        self.response.extend(token_ids)
        self.spans.append(Span(kind, start, len(self.response)))
