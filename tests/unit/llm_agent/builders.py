"""Small builders for the loop's tests: a real tokenizer, an engine that follows a script, tools that live in memory."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tests.unit.llm_agent.templates import CHATML
from verl_tool.llm_agent.action import ActionFinder
from verl_tool.llm_agent.chat import ChatTemplate
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.engine import EngineFinish, Generation
from verl_tool.llm_agent.limits import Limits
from verl_tool.llm_agent.observation import ObservationEncoder
from verl_tool.llm_agent.stop_strings import parse_stop_strings
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult, Tools
from verl_tool.llm_agent.trajectory import Task, TrajectoryRunner

END = "<|im_end|>"
SPECIAL = ["<|endoftext|>", "<|im_start|>", END, "<s>", "</s>", "[INST]", "[/INST]", "<|eot_id|>", "<end_of_turn>"]


@cache
def a_tokenizer(template: str = CHATML, eos: str = END, pad: str = "<|endoftext|>") -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer trained on a few lines, with a chat template."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    corpus = ["hello world <python>print(1+2)</python> result 3 the answer is 42 user assistant system tool\n"] * 20
    trainer = trainers.BpeTrainer(
        vocab_size=420, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    inner.train_from_iterator(corpus, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=eos, pad_token=pad, additional_special_tokens=SPECIAL
    )
    tokenizer.chat_template = template
    return tokenizer


def a_config(**settings: Any) -> AgentActorConfig:
    """Settings of an agent whose actions end in </python>."""
    base = {"action_stop_tokens": ["</python>"], "tool_server_url": "http://127.0.0.1:1", "max_turns": 3}
    return AgentActorConfig.parse(base | settings)


def some_limits(**lengths: int) -> Limits:
    """Generous budgets, unless said otherwise."""
    base = {"prompt": 512, "response": 512, "model": 1024, "action": 256, "observation": 256}
    base |= {"max_turns": 3, "response_width": 512}
    return Limits(**(base | lengths))


def says(text: str, *, finish: EngineFinish = EngineFinish.STOP, ends: bool = True) -> Generation:
    """A generation of `text`; `ends` appends the end token, as a model does when it stops by itself."""
    tokenizer = a_tokenizer()
    ids = tokenizer.encode(text, add_special_tokens=False)
    if ends:
        ids.append(tokenizer.convert_tokens_to_ids(END))
    return Generation(ids, [-0.25] * len(ids), finish, weights_version=1)


def calls_python(code: str = "print(1+2)") -> Generation:
    """A generation that a stop string ended."""
    return says(f"<python>{code}</python>", ends=False)


@dataclass
class ScriptedEngine:
    """Answers each request with what `script` makes of the prompt and the request's number."""

    script: Callable[[list[int], int], Generation | Exception]
    seconds: float = 0.0
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def generate(
        self, *, request_id: str, prompt_ids: Sequence[int], sampling_params: dict[str, Any]
    ) -> Generation:
        self.requests.append({"request_id": request_id, "prompt_ids": list(prompt_ids), **sampling_params})
        number = len(self.requests) - 1
        await asyncio.sleep(self.seconds)
        answer = self.script(list(prompt_ids), number)
        if isinstance(answer, Exception):
            raise answer
        if len(answer.token_ids) > sampling_params["max_tokens"]:
            most = sampling_params["max_tokens"]
            return Generation(answer.token_ids[:most], answer.log_probs[:most], EngineFinish.LENGTH, 1)
        return answer


def an_engine(*generations: Generation | Exception) -> ScriptedEngine:
    """An engine that gives these generations one after the other, the last one again and again."""
    return ScriptedEngine(lambda _, number: generations[min(number, len(generations) - 1)])


@dataclass
class MemoryTools:
    """Tools without a server."""

    answer: Callable[[ToolCall], ToolResult | Exception]
    calls: list[ToolCall] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    seconds: Callable[[ToolCall], float] = lambda call: 0.0

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        await asyncio.sleep(self.seconds(call))
        result = self.answer(call)
        if isinstance(result, Exception):
            raise result
        return result

    async def call_many(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        self.requests = [*getattr(self, "requests", []), list(calls)]
        return list(await asyncio.gather(*map(self.call, calls)))

    def close(self, call: ToolCall) -> None:
        self.closed.append(call.trajectory_id)


def tools_say(text: str, *, valid: bool = True, done: bool = False, **more: Any) -> MemoryTools:
    """Tools that answer every call alike."""
    return MemoryTools(lambda _: ToolResult(text, done, valid, **more))


def a_runner(
    engine: Any,
    tools: Tools,
    *,
    config: AgentActorConfig | None = None,
    limits: Limits | None = None,
    tokenizer: Any = None,
) -> TrajectoryRunner:
    """A runner as the manager makes it."""
    config = config or a_config()
    tokenizer = tokenizer or a_tokenizer()
    stops = parse_stop_strings(config.action_stop_tokens)
    return TrajectoryRunner(
        engine,
        tools,
        ActionFinder(
            tokenizer,
            stops,
            frozenset({tokenizer.eos_token_id}),
            every_turn_is_an_action=config.enable_mtrl and not stops,
        ),
        ObservationEncoder(tokenizer, ChatTemplate(tokenizer), config),
        config,
        limits or some_limits(max_turns=config.max_turns),
        {"temperature": 1.0, "logprobs": True},
    )


def a_task(name: str = "row", prompt: str = "hello", **extra: Any) -> Task:
    """A trajectory's start."""
    return Task(name, a_tokenizer().encode(prompt, add_special_tokens=False), extra)


def text_of(ids: Sequence[int]) -> str:
    """Tokens as text, special ones shown."""
    return str(a_tokenizer().decode(list(ids), skip_special_tokens=False))
