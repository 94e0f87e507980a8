"""Curves as geometry."""

import re

from hypothesis import given
from hypothesis import strategies as st

from verl_tool.report import numbers
from verl_tool.report.history import Series
from verl_tool.report.plot import (
    HEIGHT,
    MOST_POINTS,
    WIDTH,
    plot,
    smoothed,
    sparkline,
    step_ticks,
    thinned,
    value_ticks,
)

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def points(path: str) -> list[tuple[int, int]]:
    return [(int(x), int(y)) for x, y in re.findall(r"(-?\d+) (-?\d+)", path)]


def a_series(*values: float) -> Series:
    return Series(tuple(range(1, len(values) + 1)), values)


def test_a_line_goes_from_the_first_step_to_the_last_and_up_is_more():
    drawn = plot([a_series(0.0, 1.0)], steps=(1, 2), text=numbers.number, bounds=(0, 1))
    assert points(drawn.curves[0].path) == [(0, HEIGHT), (WIDTH, 0)]


def test_bounds_are_shown_whole_unless_a_value_is_outside():
    within = plot([a_series(0.4, 0.6)], steps=(1, 2), text=numbers.number, bounds=(0, 1))
    assert (within.y_ticks[0].text, within.y_ticks[-1].text) == ("0", "1")
    outside = plot([a_series(0.4, 3.0)], steps=(1, 2), text=numbers.number, bounds=(0, 1))
    assert float(outside.y_ticks[-1].text) >= 3


def test_a_logarithmic_axis_has_powers_of_ten():
    drawn = plot([a_series(2e-6, 3e-4)], steps=(1, 2), text=numbers.number, log=True)
    assert [tick.text for tick in drawn.y_ticks] == ["1e−6", "1e−5", "1e−4", "0.001"]


def test_a_logarithmic_axis_falls_back_where_a_value_is_zero():
    drawn = plot([a_series(0.0, 3e-4)], steps=(1, 2), text=numbers.number, log=True)
    assert drawn.y_ticks[0].text == "0"


@given(st.lists(st.lists(finite, min_size=1, max_size=60), min_size=1, max_size=3), st.booleans())
def test_any_values_give_a_line_within_the_plot(lines, log):
    series = [a_series(*values) for values in lines]
    drawn = plot(series, steps=(1, max(map(len, lines))), text=numbers.number, log=log)
    for curve in drawn.curves:
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points(curve.path))
    assert all(-0.01 <= tick.at <= 100.01 for tick in drawn.y_ticks)
    assert 2 <= len(drawn.y_ticks) <= 9


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_value_ticks_are_round_and_hold_the_values_between_them(low, width):
    ticks = value_ticks(low, low + width)
    size = (ticks[-1] - ticks[0]) / (len(ticks) - 1)
    assert ticks[0] <= low + 1e-6 * size and ticks[-1] >= low + width - 1e-6 * size
    assert f"{size:.3e}"[:5] in ("1.000", "2.000", "5.000")


def test_step_ticks_are_whole_numbers_even_of_a_short_run():
    assert step_ticks(1, 3) == [1, 2, 3]
    assert step_ticks(7, 7) == [7]
    assert step_ticks(0, 1000) == [0, 200, 400, 600, 800, 1000]


def test_a_long_line_is_thinned_without_losing_its_spike():
    series = a_series(*(0.0 if step != 12_345 else 99.0 for step in range(50_000)))
    few = thinned(series)
    assert len(few.values) <= MOST_POINTS and max(few.values) == 99.0
    assert few.steps[0] == 1 and few.steps[-1] == 50_000


def test_a_long_noisy_line_gets_a_running_mean_and_a_short_one_does_not():
    assert smoothed(a_series(1.0, 2.0)) is None
    mean = smoothed(a_series(*([0.0, 1.0] * 100)))
    assert mean is not None and all(0.3 < value < 0.7 for value in mean.values)


def test_a_single_point_is_in_the_middle():
    assert points(sparkline(a_series(5.0), steps=(1, 1))) == [(WIDTH // 2, HEIGHT // 2)]
