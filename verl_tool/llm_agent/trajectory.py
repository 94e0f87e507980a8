"""One trajectory: generate, find the action, call the tool, take the observation in, again, until a reason to end."""

import asyncio
import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from verl_tool.errors import ToolServerError
from verl_tool.llm_agent.action import ActionFinder
from verl_tool.llm_agent.config import AgentActorConfig
from verl_tool.llm_agent.engine import Engine, EngineFinish, Generation, TokenId
from verl_tool.llm_agent.limits import Limits
from verl_tool.llm_agent.observation import INVALID_ACTION, ObservationEncoder
from verl_tool.llm_agent.tokens import TokenStream
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult, Tools


class FinishReason(StrEnum):
    """Why a trajectory ended."""

    ANSWERED = "answered"  # the model ended its turn and asked for no tool
    TOOL_DONE = "tool_done"  # the tool said that the task is done
    MAX_TURNS = "max_turns"  # the last turn's action was run
    TRUNCATED = "truncated"  # a length was used up
    TOOL_ERROR = "tool_error"  # the tool raised
    TOOL_SERVER_ERROR = "tool_server_error"  # the tool server gave no usable answer
    ENGINE_ERROR = "engine_error"  # the engine failed, took too long, or gave the request up

    @property
    def failed(self) -> bool:
        """Whether something other than the model is to blame: such a row is not trained on."""
        return self in (FinishReason.TOOL_ERROR, FinishReason.TOOL_SERVER_ERROR, FinishReason.ENGINE_ERROR)


@dataclass(frozen=True, slots=True)
class Task:
    """What one trajectory starts from."""

    trajectory_id: str
    prompt_ids: list[TokenId]
    extra_fields: Mapping[str, Any] = field(default_factory=dict)  # JSON values: goes to the tool with every call


@dataclass(slots=True)
class Trajectory:
    """A row under way, and at the end what became of it."""

    task: Task
    stream: TokenStream
    calls: list[tuple[ToolCall, ToolResult]] = field(default_factory=list)
    tool_rewards: list[tuple[int, float]] = field(default_factory=list)  # position in the response, reward
    action_lengths: list[int] = field(default_factory=list)  # tokens of each generation
    observation_lengths: list[int] = field(default_factory=list)  # tokens of each observation
    tool_turns: int = 0
    asked_to_go_on: int = 0
    session_open: bool = False
    finish: FinishReason | None = None
    fault: str | None = None
    weights_versions: set[int] = field(default_factory=set)
    preemptions: int = 0

    @property
    def valid_actions(self) -> int:
        """Actions that a tool accepted."""
        return sum(result.valid for _, result in self.calls)

    def end(self, reason: FinishReason, fault: str | None = None) -> None:
        """Ends the row; the first reason stays."""
        if self.finish is None:
            self.finish, self.fault = reason, fault


class _EngineFaultError(Exception):
    """The engine raised, took too long, or aborted."""


@dataclass(frozen=True, slots=True)
class TrajectoryRunner:
    """Runs trajectories by the settings of one rollout; holds nothing of any one of them."""

    engine: Engine
    tools: Tools
    finder: ActionFinder
    encoder: ObservationEncoder
    config: AgentActorConfig
    limits: Limits
    sampling_params: Mapping[str, Any]  # without max_tokens and stop strings
    request_ids: "RequestIds" = field(default_factory=lambda: RequestIds())

    async def run(self, task: Task) -> Trajectory:
        """Runs one trajectory to its end. Raises only what is a fault of this program."""
        row = Trajectory(task, TokenStream(list(task.prompt_ids)))
        try:
            await self._converse(row)
        except _EngineFaultError as fault:
            row.end(FinishReason.ENGINE_ERROR, str(fault))
        except ToolServerError as fault:
            row.end(FinishReason.TOOL_SERVER_ERROR, str(fault))
        if row.session_open:
            self.tools.close(ToolCall(task.trajectory_id, "", {}, finish=True))
        return row

    async def _converse(self, row: Trajectory) -> None:
        if self.config.call_tool_first:
            await self._act(row, "", last=False, end_text="")  # none of the model's turns
            row.tool_turns = 0
        while row.finish is None:
            last = row.tool_turns >= self.limits.max_turns
            stops_apply = self.limits.max_turns > 0 and not (last and self.config.force_finish_for_last_turn)
            generation = await self._generate(row, with_stops=stops_apply)
            if generation is None:
                row.end(FinishReason.TRUNCATED)
                break
            turn = self.finder.read(generation, stops_apply=stops_apply)
            if turn.action is not None:
                await self._act(row, turn.action, last=last, end_text=turn.end_text)
            elif generation.finish is EngineFinish.LENGTH:
                row.end(FinishReason.TRUNCATED)
            elif not self._goes_on(row, turn.end_text):
                row.end(FinishReason.ANSWERED)

    async def _generate(self, row: Trajectory, *, with_stops: bool) -> Generation | None:
        """One generation within what is left of the row's budget; None when nothing is left."""
        stream = row.stream
        budget = self.limits.generation_budget(prompt=len(stream.prompt), response=len(stream.response))
        if budget < 1:
            return None
        params = {**self.sampling_params, "max_tokens": budget}
        if with_stops and self.finder.stop_strings:
            # vLLM looks for stop strings in its own text, which has to show special tokens: a stop string may be one
            params |= {
                "stop": list(self.finder.stop_strings),
                "include_stop_str_in_output": True,
                "skip_special_tokens": False,
            }
        try:
            async with asyncio.timeout(self.config.generation_time_out):
                generation = await self.engine.generate(
                    request_id=self.request_ids.new(), prompt_ids=stream.context(), sampling_params=params
                )
        except TimeoutError as fault:
            raise _EngineFaultError(f"no generation within {self.config.generation_time_out:g} s") from fault
        except Exception as fault:
            raise _EngineFaultError(f"{type(fault).__name__}: {fault}") from fault
        if generation.finish is EngineFinish.ABORT or not generation.token_ids:
            raise _EngineFaultError("the engine gave the request up")
        if len(generation.token_ids) > budget:
            raise _EngineFaultError(f"the engine gave {len(generation.token_ids)} tokens, {budget} were asked for")
        self._take_in(row, generation)
        return generation

    @staticmethod
    def _take_in(row: Trajectory, generation: Generation) -> None:
        try:
            row.stream.add_sampled(generation.token_ids, generation.log_probs)
        except ValueError as fault:
            raise _EngineFaultError(str(fault)) from fault
        row.action_lengths.append(len(generation.token_ids))
        row.preemptions += generation.num_preempted
        if generation.weights_version is not None:
            row.weights_versions.add(generation.weights_version)

    async def _act(self, row: Trajectory, action: str, *, last: bool, end_text: str) -> None:
        """Has the action run and takes its observation in."""
        most = self.limits.max_turns
        extra = {
            **row.task.extra_fields,
            "current_step": row.tool_turns,
            "max_turns": most,
            "turns_left": max(0, most - row.tool_turns),
        }
        call = ToolCall(row.task.trajectory_id, action, extra, is_last_step=last)
        row.session_open = True
        result = await self.tools.call(call)
        row.calls.append((call, result))
        row.session_open = not (result.done or last)
        row.tool_turns += 1
        if result.reward is not None:
            row.tool_rewards.append((row.stream.last_sampled_position() or 0, result.reward))
        if result.error is not None:
            row.end(FinishReason.TOOL_ERROR, result.error)
            return
        fits = self._observe(row, observation_text(result, chat_turn=self.config.enable_mtrl), end_text)
        if result.done:
            row.end(FinishReason.TOOL_DONE)
        elif last:
            row.end(FinishReason.MAX_TURNS)
        elif not fits:
            row.end(FinishReason.TRUNCATED)

    def _observe(self, row: Trajectory, text: str, end_text: str) -> bool:
        """Appends an observation's tokens; False when there is no room for it."""
        stream = row.stream
        budget = self.limits.observation_budget(prompt=len(stream.prompt), response=len(stream.response))
        ids = self.encoder.encode(text, limit=self.limits.observation, budget=budget, end_text=end_text)
        stream.add_observation(ids or [])
        row.observation_lengths.append(len(ids or []))
        return ids is not None

    def _goes_on(self, row: Trajectory, end_text: str) -> bool:
        """Asks a model that answered before min_turns to go on; False when there is nothing to ask or no room."""
        if row.tool_turns >= min(self.config.min_turns, self.limits.max_turns):
            return False
        stream = row.stream
        budget = self.limits.observation_budget(prompt=len(stream.prompt), response=len(stream.response))
        ids = self.encoder.go_on(budget=budget, end_text=end_text)
        if ids is None:
            return False
        row.asked_to_go_on += 1
        stream.add_forced(ids)
        return True


def observation_text(result: ToolResult, *, chat_turn: bool) -> str:
    """What the model is shown of a result; an invalid action is always told so."""
    if result.valid or (result.observation and not chat_turn):
        return result.observation
    said = result.observation or result.invalid_reason or ""
    text = f"{INVALID_ACTION}\n{said}".rstrip("\n")
    return text if chat_turn else f"\n{text}\n"


class RequestIds:
    """Ids for engine requests, never the same twice, cheap to make."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count()

    def new(self) -> str:
        """A fresh id."""
        return f"{self._prefix}-{next(self._numbers)}"
