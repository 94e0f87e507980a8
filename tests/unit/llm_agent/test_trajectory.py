"""One trajectory, from its prompt to the reason it ended."""

import asyncio

import pytest

from tests.unit.llm_agent.builders import (
    END,
    MemoryTools,
    ScriptedEngine,
    a_config,
    a_runner,
    a_task,
    a_tokenizer,
    an_engine,
    calls_python,
    says,
    some_limits,
    text_of,
    tools_say,
)
from verl_tool.errors import ToolServerError
from verl_tool.llm_agent.engine import EngineFinish, Generation
from verl_tool.llm_agent.observation import GO_ON, INVALID_ACTION
from verl_tool.llm_agent.record import SegmentKind
from verl_tool.llm_agent.tool_call import ToolCall, ToolResult
from verl_tool.llm_agent.trajectory import FinishReason

RESULT = "\n<result>\n3\n</result>\n"


async def test_the_second_turns_prompt_is_prompt_action_and_observation_token_by_token() -> None:
    """R7"""
    engine = an_engine(calls_python(), says("3"))
    row = await a_runner(engine, tools_say(RESULT)).run(a_task())
    observation = a_tokenizer().encode(RESULT, add_special_tokens=False)
    assert engine.requests[1]["prompt_ids"] == row.stream.prompt + list(calls_python().token_ids) + observation
    assert row.finish is FinishReason.ANSWERED


async def test_sampled_ids_are_kept_although_their_text_encodes_differently() -> None:
    """R10: tokens h-e-l-l-o one by one, where the text `hello` is fewer tokens."""
    tokenizer = a_tokenizer()
    ids = [tokenizer.encode(character, add_special_tokens=False)[0] for character in "hello"]
    assert tokenizer.encode("hello", add_special_tokens=False) != ids
    engine = an_engine(Generation([*ids, tokenizer.eos_token_id], [-0.1] * 6, EngineFinish.STOP))
    row = await a_runner(engine, tools_say("")).run(a_task())
    assert row.stream.response == [*ids, tokenizer.eos_token_id]


async def test_a_row_whose_budget_is_used_up_is_closed_without_a_request() -> None:
    """R2"""
    engine = an_engine(calls_python())
    row = await a_runner(engine, tools_say(RESULT), limits=some_limits(model=1)).run(a_task("row", "hello world"))
    assert row.finish is FinishReason.TRUNCATED
    assert engine.requests == []


async def test_no_request_ever_asks_for_less_than_one_token() -> None:
    """R2"""
    engine = an_engine(calls_python())
    size = len(calls_python().token_ids)
    for response in range(1, 3 * size):
        limits = some_limits(response=response, max_turns=9)
        row = await a_runner(engine, tools_say(RESULT), limits=limits).run(a_task())
        assert len(row.stream.response) <= response
    assert min(request["max_tokens"] for request in engine.requests) >= 1


@pytest.mark.parametrize(
    ("finish", "reason"), [(EngineFinish.LENGTH, FinishReason.TRUNCATED), (EngineFinish.STOP, FinishReason.ANSWERED)]
)
@pytest.mark.parametrize("ends", [True, False])
async def test_the_engine_says_whether_a_row_is_truncated_not_its_last_token(
    finish: EngineFinish, reason: FinishReason, ends: bool
) -> None:
    """R17"""
    row = await a_runner(an_engine(says("42", finish=finish, ends=ends)), tools_say("")).run(a_task())
    assert row.finish is reason


async def test_a_trajectory_that_calls_no_tool_costs_no_tool_request() -> None:
    """R21"""
    tools = tools_say("")
    row = await a_runner(an_engine(says("42")), tools).run(a_task())
    assert (tools.calls, tools.closed) == ([], [])
    assert row.tool_turns == 0


async def test_every_engine_request_has_an_id_of_its_own() -> None:
    """R9: the same prompt sampled 8 times over 3 turns."""
    engine = an_engine(calls_python())
    runner = a_runner(engine, tools_say(RESULT))
    await asyncio.gather(*(runner.run(a_task(f"u_{i}")) for i in range(8)))
    ids = [request["request_id"] for request in engine.requests]
    assert len(ids) == 8 * 4 == len(set(ids))


async def test_the_last_turns_action_is_run_with_the_mark_and_ends_the_row() -> None:
    tools = tools_say(RESULT)
    row = await a_runner(an_engine(calls_python()), tools, config=a_config(max_turns=2)).run(a_task())
    assert [call.is_last_step for call in tools.calls] == [False, False, True]
    assert row.finish is FinishReason.MAX_TURNS
    assert tools.closed == []  # the last step has ended the session
    assert text_of(row.stream.response).endswith(RESULT)


async def test_a_forced_last_turn_has_no_stop_strings_and_calls_no_tool() -> None:
    tools = tools_say(RESULT)
    config = a_config(max_turns=1, force_finish_for_last_turn=True)
    engine = an_engine(calls_python(), says("<python>print(1)</python> so 3"))
    row = await a_runner(engine, tools, config=config).run(a_task())
    assert "stop" in engine.requests[0] and "stop" not in engine.requests[1]
    assert len(tools.calls) == 1
    assert row.finish is FinishReason.ANSWERED
    assert tools.closed == ["row"]


async def test_a_model_that_answers_too_early_is_asked_to_go_on_in_the_templates_form() -> None:
    """R22"""
    config = a_config(min_turns=2, max_turns=3)
    engine = an_engine(says("42"), calls_python(), says("42"), calls_python(), says("3"))
    row = await a_runner(engine, tools_say(RESULT), config=config).run(a_task())
    asked = f"42{END}\n<|im_start|>user\n{GO_ON}{END}\n<|im_start|>assistant\n<python>"
    assert text_of(row.stream.response).count(asked) == 2
    assert (row.tool_turns, row.asked_to_go_on, row.finish) == (2, 2, FinishReason.ANSWERED)
    forced = [text_of(ids) for ids in row.stream.spans_of(SegmentKind.FORCED)]
    assert forced == [f"\n<|im_start|>user\n{GO_ON}{END}\n<|im_start|>assistant\n"] * 2


async def test_a_model_that_never_uses_a_tool_is_asked_until_its_budget_ends() -> None:
    """R22"""
    limits = some_limits(response=200)
    row = await a_runner(an_engine(says("42")), tools_say(""), config=a_config(min_turns=2), limits=limits).run(
        a_task()
    )
    assert row.asked_to_go_on >= 2
    assert len(row.stream.response) <= 200
    assert row.finish in (FinishReason.ANSWERED, FinishReason.TRUNCATED)


@pytest.mark.parametrize("chat_turn", [True, False])
async def test_a_malformed_call_is_told_so_and_the_trajectory_goes_on(chat_turn: bool) -> None:
    """R20"""
    tools = tools_say("", valid=False, invalid_reason="the JSON ends early")
    engine = an_engine(says("<python>{", ends=False) if chat_turn else calls_python("{"), says("3"))
    config = a_config(enable_mtrl=chat_turn, action_stop_tokens=None if chat_turn else ["</python>"], max_turns=1)
    row = await a_runner(engine, tools, config=config).run(a_task())
    shown = text_of(next(row.stream.spans_of(SegmentKind.OBSERVATION)))
    assert INVALID_ACTION in shown and "the JSON ends early" in shown
    assert row.valid_actions == 0
    assert len(engine.requests) == 2


async def test_an_observation_that_comes_with_done_is_kept() -> None:
    tools = tools_say(RESULT, done=True)
    row = await a_runner(an_engine(calls_python()), tools).run(a_task())
    assert row.finish is FinishReason.TOOL_DONE
    assert text_of(row.stream.response).endswith(RESULT)
    assert tools.closed == []


async def test_a_tools_reward_lies_on_the_last_token_of_its_action() -> None:
    row = await a_runner(an_engine(calls_python(), says("3")), tools_say(RESULT, reward=0.5)).run(a_task())
    assert row.tool_rewards == [(len(calls_python().token_ids) - 1, 0.5)]


async def test_a_tool_that_raises_ends_its_row_with_the_reason() -> None:
    """R15"""
    row = await a_runner(an_engine(calls_python()), tools_say("", error="boom")).run(a_task())
    assert (row.finish, row.fault) == (FinishReason.TOOL_ERROR, "boom")


async def test_an_engine_request_that_fails_ends_its_row_with_the_reason() -> None:
    """R15"""
    row = await a_runner(an_engine(RuntimeError("out of memory")), tools_say("")).run(a_task())
    assert row.finish is FinishReason.ENGINE_ERROR
    assert row.fault == "RuntimeError: out of memory"


async def test_a_tool_server_without_an_answer_ends_the_row() -> None:
    tools = MemoryTools(lambda _: ToolServerError("tool server http://x: no answer"))
    row = await a_runner(an_engine(calls_python()), tools).run(a_task())
    assert row.finish is FinishReason.TOOL_SERVER_ERROR
    assert row.fault is not None and "http://x" in row.fault


@pytest.mark.parametrize(
    "bad",
    [
        Generation([1, 2], [-0.1], EngineFinish.STOP),
        Generation([], [], EngineFinish.STOP),
        says("x" * 9, finish=EngineFinish.ABORT),
    ],
)
async def test_an_engine_that_answers_nonsense_ends_its_row(bad: Generation) -> None:
    row = await a_runner(an_engine(bad), tools_say("")).run(a_task())
    assert row.finish is FinishReason.ENGINE_ERROR
    assert row.stream.response == []


async def test_an_engine_that_hangs_ends_its_row_at_the_time_limit() -> None:
    engine = ScriptedEngine(lambda *_: says("42"), seconds=30)
    row = await a_runner(engine, tools_say(""), config=a_config(generation_time_out=0.05)).run(a_task())
    assert row.finish is FinishReason.ENGINE_ERROR
    assert row.fault == "no generation within 0.05 s"


async def test_the_tool_may_speak_first_without_a_made_up_token() -> None:
    tools = tools_say("look: ")
    row = await a_runner(an_engine(says("42")), tools, config=a_config(call_tool_first=True)).run(a_task())
    assert tools.calls[0].action == ""
    assert text_of(row.stream.response) == f"look: 42{END}"
    assert row.stream.loss_mask(train_on_observations=False)[0] is False
    assert row.tool_turns == 0


async def test_without_tool_turns_a_stop_string_does_not_stop_the_model() -> None:
    engine = an_engine(says("<python>print(1)</python> 3"))
    row = await a_runner(engine, tools_say(""), config=a_config(max_turns=0)).run(a_task())
    assert "stop" not in engine.requests[0]
    assert row.finish is FinishReason.ANSWERED


async def test_a_call_tells_the_tool_where_the_trajectory_stands() -> None:
    tools = tools_say(RESULT)
    await a_runner(an_engine(calls_python()), tools, config=a_config(max_turns=1)).run(a_task("row", index=7))
    assert [dict(call.extra_fields) for call in tools.calls] == [
        {"index": 7, "current_step": 0, "max_turns": 1, "turns_left": 1},
        {"index": 7, "current_step": 1, "max_turns": 1, "turns_left": 0},
    ]


async def test_in_chat_turns_without_stop_strings_every_response_is_an_action() -> None:
    tools = MemoryTools(lambda call: ToolResult("go on", call.action == "second", True))
    config = a_config(enable_mtrl=True, action_stop_tokens=None)
    row = await a_runner(an_engine(says("first"), says("second")), tools, config=config).run(a_task())
    assert [call.action for call in tools.calls] == ["first", "second"]
    assert text_of(row.stream.response).startswith(
        f"first{END}\n<|im_start|>user\ngo on{END}\n<|im_start|>assistant\nsecond{END}"
    )


async def test_an_action_that_stops_at_the_last_token_of_its_budget_is_still_an_action() -> None:
    limits = some_limits(action=len(calls_python().token_ids))
    action = calls_python()
    cut = Generation(action.token_ids, action.log_probs, EngineFinish.LENGTH)
    tools = tools_say(RESULT)
    await a_runner(an_engine(cut, says("3")), tools, limits=limits).run(a_task())
    assert [call.action for call in tools.calls] == ["<python>print(1+2)</python>"]


async def test_the_first_of_several_stop_strings_ends_the_action() -> None:
    tools = tools_say(RESULT)
    config = a_config(action_stop_tokens=["</sql>", "</python>"])
    engine = an_engine(says("<python>1</python><sql>2</sql>", ends=False), says("3"))
    await a_runner(engine, tools, config=config).run(a_task())
    assert tools.calls[0].action == "<python>1</python>"


async def test_cancelling_a_row_cancels_its_tool_call() -> None:
    started = asyncio.Event()

    class Slow(MemoryTools):
        async def call(self, call: ToolCall) -> ToolResult:
            started.set()
            await asyncio.sleep(30)
            raise AssertionError("not cancelled")

    run = asyncio.create_task(
        a_runner(an_engine(calls_python()), Slow(lambda _: ToolResult("", False, True))).run(a_task())
    )
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
