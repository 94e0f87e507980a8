"""Finding the action in what the model wrote in one turn; the tokens themselves are never touched."""

from collections.abc import Sequence
from dataclasses import dataclass

from verl_tool.llm_agent.chat import Tokenizer
from verl_tool.llm_agent.engine import EngineFinish, Generation, TokenId


@dataclass(frozen=True, slots=True)
class Turn:
    """What one generation says."""

    text: str  # without the end token
    action: str | None  # the text up to and with its first stop string; None: no tool is meant
    end_text: str  # the end token the model closed its turn with, "" when something else ended it


@dataclass(frozen=True, slots=True)
class ActionFinder:
    """Reads a generation by the settings of one job."""

    tokenizer: Tokenizer
    stop_strings: tuple[str, ...]
    end_ids: frozenset[TokenId]  # eos and the additional end ids
    every_turn_is_an_action: bool  # chat turns without stop strings

    def read(self, generation: Generation, *, stops_apply: bool) -> Turn:
        """The turn. `stops_apply` is off in a last turn that has to be an answer."""
        ids = generation.token_ids
        end_text = ""
        if generation.finish is EngineFinish.STOP and ids and ids[-1] in self.end_ids:
            end_text = self.tokenizer.decode(list(ids[-1:]), skip_special_tokens=False)
            ids = ids[:-1]
        text = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        action = self._action(text, generation.finish) if stops_apply else None
        return Turn(text, action, end_text)

    def _action(self, text: str, finish: EngineFinish) -> str | None:
        if self.every_turn_is_an_action:
            return text if finish is EngineFinish.STOP else None
        ends = [found + len(stop) for stop in self.stop_strings if (found := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else None


def end_ids_of(
    tokenizer: Tokenizer, eos: int | Sequence[int] | None, additional: Sequence[TokenId]
) -> frozenset[TokenId]:
    """Ids that end the model's turn: the generation config's eos (one or several), the tokenizer's, the additional."""
    ids = {eos} if isinstance(eos, int) else set(eos or ())
    own = getattr(tokenizer, "eos_token_id", None)
    return frozenset(ids | ({own} if isinstance(own, int) else set()) | set(additional))
