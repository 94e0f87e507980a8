"""What the loop's benchmarks share: a tokenizer made on the spot, an engine without a model, tools over HTTP or not."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from verl_tool.llm_agent.engine import EngineFinish, Generation
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult

STOP = "</python>"
OBSERVATION = "\n<result>\n42\n</result>\n"


def make_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of 1,000 entries."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000, special_tokens=["<pad>", "<end>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    corpus = [
        f"step {n}: compute {n * 7} + {n} and print the result, then answer <python></python>" for n in range(999)
    ]
    inner.train_from_iterator(corpus, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token="<end>", pad_token="<pad>")
    tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    return tokenizer


class TimedTokenizer:
    """A tokenizer that sums up the seconds spent in it."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._tokenizer = tokenizer
        self.seconds = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str, **more: Any) -> list[int]:
        return self._timed(self._tokenizer.encode, text, **more)

    def decode(self, ids: Any, **more: Any) -> str:
        return self._timed(self._tokenizer.decode, ids, **more)

    def apply_chat_template(self, conversation: Any, **more: Any) -> Any:
        return self._timed(self._tokenizer.apply_chat_template, conversation, **more)

    def _timed(self, call: Callable[..., Any], *args: Any, **more: Any) -> Any:
        begun = time.process_time()
        try:
            return call(*args, **more)
        finally:
            self.seconds += time.process_time() - begun


@dataclass
class SlotEngine:
    """So many requests at once, so many seconds each; the tokens are always the same action."""

    token_ids: list[int]
    slots: int
    seconds: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.slots)
        self._log_probs = [-0.5] * len(self.token_ids)

    async def generate(
        self, *, request_id: str, prompt_ids: Sequence[int], sampling_params: dict[str, Any]
    ) -> Generation:
        async with self._slots:
            begun = time.perf_counter()
            if self.seconds:
                await asyncio.sleep(self.seconds)
            self.spans.append((begun, time.perf_counter()))
        return Generation(self.token_ids, self._log_probs, EngineFinish.STOP, 1)


@dataclass
class SleepingTools:
    """Tools in this process that take as long as `seconds` says of the call's number."""

    seconds: Callable[[int], float]
    calls: int = 0

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls += 1
        if wait := self.seconds(self.calls):
            await asyncio.sleep(wait)
        return ToolResult(OBSERVATION, False, True)

    async def call_many(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        return list(await asyncio.gather(*(self.call(call) for call in calls if not call.finish)))

    def close(self, call: ToolCall) -> None:
        """A session costs nothing here."""
