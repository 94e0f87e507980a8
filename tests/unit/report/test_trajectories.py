"""Which trajectories are shown, and how a row becomes turns of blocks."""

from collections.abc import Sequence

import pytest

from tests.unit.report.builders import a_call, a_record, a_run, observed, sampled
from verl_tool.job.run_folder import RunFolder
from verl_tool.llm_agent.record import SegmentKind
from verl_tool.report import trajectories
from verl_tool.report.run import read_run
from verl_tool.report.trajectories import Group, choose
from verl_tool.report.transcript import MOST_BLOCKS, Look, Piece, split_action, transcript


def chosen(folder: RunFolder) -> list[Group]:
    run = read_run(folder)
    return choose(run.training, run.validation)


def texts(pieces: Sequence[Piece], look: Look) -> list[str]:
    return [piece.text for piece in pieces if piece.look is look]


def test_the_task_that_got_better_is_shown_before_and_after(tmp_path):
    before = [a_record(uid="a", prompt="p", reward=0.0), a_record(uid="b", prompt="q", reward=1.0)]
    after = [a_record(uid="c", step=9, prompt="p", reward=1.0), a_record(uid="d", step=9, prompt="q", reward=1.0)]
    first = chosen(a_run(tmp_path, validation={0: before, 9: after}))[0]
    assert [(each.why, each.record.uid) for each in first.chosen] == [("before", "a"), ("after", "c")]


def test_the_best_and_the_worst_of_the_first_and_the_last_step_are_shown_once_each(tmp_path):
    rows = {
        step: [a_record(uid=(name := f"{step}{reward}"), prompt=name, reward=reward) for reward in (0.0, 0.5, 1.0)]
        for step in (1, 2, 10)
    }
    groups = chosen(a_run(tmp_path, training=rows))
    assert [[each.record.uid for each in group.chosen] for group in groups] == [["11.0", "10.0"], ["101.0", "100.0"]]


def test_rows_of_one_reward_are_shown_by_one(tmp_path):
    (group,) = chosen(a_run(tmp_path, training={1: [a_record(uid="a"), a_record(uid="b")]}))
    assert len(group.chosen) == 1


def test_a_row_that_failed_is_shown(tmp_path):
    rows = [a_record(uid=str(number), reward=number / 10) for number in range(5)]
    rows[2] = rows[2].model_copy(update={"finish_reason": "tool_error"})
    assert [each.record.uid for each in chosen(a_run(tmp_path, training={1: rows}))[-1].chosen] == ["2"]


def test_rows_without_rewards_and_half_written_lines_are_no_reason_to_fail(tmp_path):
    run = read_run(a_run(tmp_path, training={1: [a_record(reward=None), '{"step": 1, "uid"']}))
    assert len(run.training[0].records) == 1 and run.training[0].skipped[0].line == 2
    assert choose(run.training, run.validation)


def test_no_more_rows_are_read_than_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(trajectories, "MOST_READ", 3)
    (batch,) = read_run(a_run(tmp_path, training={1: [a_record()] * 10})).training
    assert len(batch.records) == 3 and batch.partly_read


def test_a_row_becomes_turns_with_the_call_set_apart_from_the_thought_before_it():
    call = "Let me see. <python>print(2+2)</python>"
    row = a_record(
        segments=[sampled(call), observed("\n4\n"), sampled("Answer: 4<|im_end|>")],
        tool_calls=[a_call(call, reward=0.5)],
    )
    shown = transcript(row)
    assert [turn.number for turn in shown.turns] == [1, 2]
    said, answered = shown.turns[0].blocks
    assert texts(said.pieces, Look.TEXT) == ["Let me see. "] and texts(said.pieces, Look.CALL) == [
        "<python>print(2+2)</python>"
    ]
    assert said.calls[0].reward == 0.5
    assert answered.kind is SegmentKind.OBSERVATION and texts(answered.pieces, Look.MARK) == ["↵", "↵"]
    assert texts(shown.turns[1].blocks[0].pieces, Look.SPECIAL) == ["<|im_end|>"]
    assert (shown.sampled, shown.masked) == (10, 3)


def test_a_call_whose_text_is_not_in_the_row_is_told_of_all_the_same():
    row = a_record(tool_calls=[a_call("something else")])
    assert [call.action for turn in transcript(row).turns for block in turn.blocks for call in block.calls] == [
        "something else"
    ]


@pytest.mark.parametrize(
    ("action", "parts"),
    [
        ("x <a>1</a> y <a>2</a>", ("x <a>1</a> y ", "<a>2</a>")),
        ("x\n```python\n1\n```", ("x\n", "```python\n1\n```")),
        ("1 + 1", ("", "1 + 1")),
    ],
)
def test_an_action_is_split_where_its_call_begins(action, parts):
    assert split_action(action) == parts


def test_a_long_row_is_cut_in_the_middle_and_says_so():
    segments = [sampled("a" * 10_000) for _ in range(MOST_BLOCKS + 8)]
    shown = transcript(a_record(segments=segments, tool_calls=[], prompt="p" * 50_000))
    assert shown.left_out == 8
    assert [turn.number for turn in shown.turns][-1] == MOST_BLOCKS + 8
    assert "left out" in texts(shown.turns[0].blocks[0].pieces, Look.MARK)[0]
    assert sum(len(piece.text) for turn in shown.turns for block in turn.blocks for piece in block.pieces) < 20_000


def test_characters_that_hide_or_turn_their_neighbours_are_made_visible():
    shown = transcript(a_record(segments=[sampled("a\x02b\u202ec\u200bd")], tool_calls=[]))
    assert texts(shown.turns[0].blocks[0].pieces, Look.TEXT) == ["a␂b⟨U+202E⟩c⟨U+200B⟩d"]
