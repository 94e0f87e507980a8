"""Numbers and times as people read them."""

import math
from collections.abc import Callable
from datetime import UTC, datetime

Format = Callable[[float], str]

_THIN = "\u2009"  # between groups of digits
_MINUS = "\u2212"


def number(value: float) -> str:
    """Three significant digits, large numbers in groups of three, very small and very large ones as powers of ten."""
    if value == 0:
        return "0"
    sign = _MINUS if value < 0 else ""
    size = abs(value)
    if size >= 1e7 or size < 1e-3:
        mantissa, _, exponent = f"{size:.1e}".partition("e")
        return f"{sign}{mantissa.removesuffix('.0')}e{int(exponent)}".replace("e-", f"e{_MINUS}")
    if size >= 1000:
        return sign + f"{size:,.0f}".replace(",", _THIN)
    decimals = max(0, 2 - math.floor(math.log10(size)))
    text = f"{size:.{decimals}f}"
    return sign + (text.rstrip("0").rstrip(".") if "." in text else text)


def percent(share: float) -> str:
    """A share as per cent, with a digit behind the point only where it tells something."""
    per_cent = 100 * share
    if per_cent in (0, 100) or abs(per_cent) >= 10:
        whole = f"{per_cent:.0f}"
        return f"{'>99' if whole == '100' and per_cent < 100 else whole}{_THIN}%"
    return f"{per_cent:.1f}".removesuffix(".0") + f"{_THIN}%"


def seconds(value: float) -> str:
    """A short time: 6.8 ms, 1.75 s."""
    return f"{number(1000 * value)}{_THIN}ms" if abs(value) < 0.1 else f"{number(value)}{_THIN}s"


def duration(value: float) -> str:
    """A long time: 42 s, 4 min 10 s, 3 h 05 min, 2 d 4 h."""
    whole = round(value)
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if whole < 60:
        return f"{whole} s"
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    if hours < 48:
        return f"{hours} h {minutes_left:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def moment(timestamp: float) -> str:
    """A time of day, in UTC."""
    time = datetime.fromtimestamp(timestamp, tz=UTC)
    return f"{time.day} {time:%B %Y, %H:%M} UTC"
