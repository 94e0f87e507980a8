"""A growing metrics file, step by step."""

from pathlib import Path

import pytest

from verl_tool.cli.metrics_file import MetricsFile, Step, keep_earlier, parse, validation_reward
from verl_tool.job.run_folder import RunFolder

LINE = b'{"step": 3, "data": {"critic/score/mean": 0.5, "timing_s/step": 2.5}}'


def test_a_line_half_written_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    assert list(file.new_steps()) == []

    path.write_bytes(LINE[:20])
    assert list(file.new_steps()) == []
    path.write_bytes(LINE + b"\n" + LINE[:10])
    assert list(file.new_steps()) == [Step(3, 0.5, None, 2.5)]
    assert list(file.new_steps()) == []


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"step": "x", "data": {}}', b'{"step": 1, "data": 2}', b"\xff"])
def test_what_is_no_line_of_metrics_is_no_step(line: bytes) -> None:
    assert parse(line) is None


def test_validation_is_the_mean_over_the_data_sources() -> None:
    data = {
        "val-core/products/reward/mean@1": 0.5,
        "val-aux/chain_sum/reward/mean@1": 1.0,
        "val-core/chain_sum/acc/mean@1": 0.0,
        "val-aux/products/num_turns/mean": 7.0,
    }
    assert validation_reward(data) == 0.75
    assert validation_reward({}) is None


def test_the_metrics_of_earlier_attempts_are_kept_in_their_order(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for attempt in ("first", "second"):
        folder.metrics.write_text(attempt)
        keep_earlier(folder)
    assert not folder.metrics.exists()
    keep_earlier(folder)

    assert [path.read_text() for path in folder.earlier_metrics] == ["first", "second"]
