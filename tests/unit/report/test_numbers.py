"""Numbers as people read them."""

import pytest

from verl_tool.report import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1, "1"), (0.5, "0.5"), (0.98765, "0.988"), (12.345, "12.3"), (100, "100"), (-3, "−3"), (660.0, "660"),
     (12345, "12\u2009345"),
     (2.5e-6, "2.5e−6"), (1e-5, "1e−5"), (3.2e9, "3.2e9"), (0.999999, "1")],
)  # fmt: skip
def test_a_number_has_three_significant_digits(value, text):
    assert numbers.number(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0"), (1, "100"), (0.999, ">99"), (0.123, "12"), (0.0123, "1.2"), (0.02, "2")]
)
def test_a_share_is_all_or_nothing_only_when_it_is(share, text):
    assert numbers.percent(share) == f"{text}\u2009%"


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "3 s"), (250, "4 min 10 s"), (3 * 3600 + 300, "3 h 05 min"), (3 * 86400, "3 d 0 h")]
)
def test_a_duration_is_as_fine_as_it_has_to_be(seconds, text):
    assert numbers.duration(seconds) == text


def test_short_times_are_milliseconds():
    assert numbers.seconds(0.0068) == "6.8\u2009ms"
    assert numbers.seconds(1.755) == "1.75\u2009s" or numbers.seconds(1.755) == "1.76\u2009s"
