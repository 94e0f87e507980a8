"""The curve in the terminal."""

from hypothesis import given
from hypothesis import strategies as st

from verl_tool.cli.summary import MOST_COLUMNS, curve

FLOATS = st.floats(-1e6, 1e6, allow_nan=False)


def test_a_rising_reward_is_drawn_rising() -> None:
    lines = curve([(step, step / 10) for step in range(11)], height=4, columns=11)

    top, bottom = lines[0].partition("│")[2], lines[3].partition("│")[2]
    assert lines[0].lstrip().startswith("1.00") and lines[3].lstrip().startswith("0.00")
    assert top.startswith("   ") and top.endswith("█")
    assert bottom.count("█") > top.count("█")


@given(st.lists(FLOATS, min_size=1, max_size=300))
def test_every_list_of_rewards_fits_the_terminal(values: list[float]) -> None:
    lines = curve(list(enumerate(values)))

    assert len(lines) == 10
    assert all(len(line) <= MOST_COLUMNS + 20 for line in lines)


def test_no_steps_are_no_curve() -> None:
    assert curve([]) == []
