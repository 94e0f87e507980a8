"""Metrics of a run, over its attempts, from files that may be cut off."""

from itertools import pairwise

import pytest

from tests.unit.report.builders import a_run, metric_lines
from verl_tool.job.run_folder import RunFolder
from verl_tool.report import history
from verl_tool.report.history import History, read_history
from verl_tool.report.lines import Skipped


def read(folder: RunFolder) -> History:
    return read_history([*folder.earlier_metrics, folder.metrics])


def test_a_metric_has_the_steps_it_was_logged_at_and_no_others(tmp_path):
    known = read(a_run(tmp_path, metrics={1: {"a": 1.0}, 2: {"a": 2.0, "b": 5}, 4: {"a": 4.0}}))
    assert known.series["a"].steps == (1, 2, 4) and known.series["a"].values == (1.0, 2.0, 4.0)
    assert known.series["b"].steps == (2,)
    assert known.last_step == 4


def test_lines_of_the_same_step_are_one_step(tmp_path):
    known = read(a_run(tmp_path, metrics=metric_lines({3: {"a": 1.0}}) + metric_lines({3: {"b": 2.0}})))
    assert known.series["a"].steps == known.series["b"].steps == (3,)


def test_a_resumed_run_is_one_curve_and_what_was_done_again_is_shown_as_it_was_the_second_time(tmp_path):
    first = {step: {"a": float(step), "val-core/x/acc/mean@1": 0.1} for step in (1, 2, 3, 4)}
    known = read(a_run(tmp_path, earlier=[first], metrics={3: {"a": 30.0}}))
    assert known.series["a"].steps == (1, 2, 3) and known.series["a"].values == (1.0, 2.0, 30.0)
    assert known.resumed_after == (2,)
    assert 4 not in known.series["val-core/x/acc/mean@1"].steps  # the first attempt's, undone by the resume


def test_a_validation_before_resuming_replaces_no_training_step(tmp_path):
    later = {2: {"val-core/x/acc/mean@1": 0.5}, 3: {"a": 3.0}}
    known = read(a_run(tmp_path, earlier=[{1: {"a": 1.0}, 2: {"a": 2.0}}], metrics=later))
    assert known.series["a"].steps == (1, 2, 3)
    assert known.resumed_after == (2,)


def test_attempts_are_joined_in_the_order_of_their_numbers_not_of_their_names(tmp_path):
    attempts = [{number: {"a": float(number)}} for number in range(1, 12)]
    known = read(a_run(tmp_path, earlier=attempts, metrics={12: {"a": 12.0}}))
    assert known.series["a"].values == tuple(map(float, range(1, 13)))


@pytest.mark.parametrize(
    "line",
    [
        '{"step": 2, "da',
        "[1, 2]",
        '{"step": "2", "data": {}}',
        '{"step": 2}',
        "\x00\x00",
        "[" * 100_000,
        '{"step": ' + "9" * 30 + ', "data": {}}',
    ],
)
def test_a_line_that_is_no_metrics_is_left_out_and_told_of(tmp_path, line):
    text = metric_lines({1: {"a": 1.0}}) + line + "\n" + metric_lines({3: {"a": 3.0}})
    known = read(a_run(tmp_path, metrics=text))
    assert known.series["a"].steps == (1, 3)
    assert known.skipped == (Skipped("metrics.jsonl", 2),)


def test_bytes_that_are_no_text_are_left_out(tmp_path):
    folder = a_run(tmp_path, metrics={1: {"a": 1.0}})
    folder.metrics.write_bytes(folder.metrics.read_bytes() + b'{"step": 2, "data": {"\xff\xfe": 1}}\n')
    assert [skipped.line for skipped in read(folder).skipped] == [2]


def test_a_line_longer_than_any_step_writes_is_never_held_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("verl_tool.report.lines.LONGEST_LINE", 100)
    text = '{"step": 1, "data": {"a": 1}}\n' + '{"step": 2, "data": {"b": "' + "x" * 350 + '"}}\n'
    known = read(a_run(tmp_path, metrics=text + '{"step": 3, "data": {"a": 3}}\n'))
    assert known.series["a"].steps == (1, 3)
    assert known.skipped == (Skipped("metrics.jsonl", 2),)


def test_values_that_are_no_finite_numbers_leave_a_gap(tmp_path):
    text = '{"step":1,"data":{"a":NaN,"b":1}}\n{"step":2,"data":{"a":Infinity,"c":"x","d":null}}\n'
    text += '{"step":3,"data":{"a":3,"e":' + "1" * 400 + "}}\n"
    known = read(a_run(tmp_path, metrics=text))
    assert set(known.series) == {"a", "b"} and known.series["a"].steps == (3,)


def test_nothing_is_known_of_a_folder_without_metrics(tmp_path):
    known = read(a_run(tmp_path))
    assert not known.series and known.last_step is None and not known.skipped


def test_a_long_run_is_thinned_evenly_and_keeps_its_validations_and_its_last_step(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "MOST_STEPS", 100)
    metrics = {step: {"a": 1.0} | ({"val-x": 1.0} if step % 50 == 0 else {}) for step in range(1, 1002)}
    known = read(a_run(tmp_path, metrics=metrics))
    steps = known.series["a"].steps
    assert known.thinned and len(steps) <= 100 and steps[-1] == 1001
    assert known.series["val-x"].steps == tuple(range(50, 1002, 50))
    assert max(later - earlier for earlier, later in pairwise(steps)) <= 40
