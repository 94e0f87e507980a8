"""The reward of the calculator: 1 for the right number as the last thing said, 0 otherwise."""

import re
from typing import Any, Final

# Behind everything a tool printed: a program that prints "Answer: 4" has answered nothing yet.
_ANSWER: Final = re.compile(r"Answer: (-?\d+)\s*\Z")


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """verl's form of a reward function; `solution_str` is all behind the prompt, without special tokens."""
    found = _ANSWER.search(solution_str)
    return float(found is not None and int(found.group(1)) == int(ground_truth))
