"""The reward of the SmolLM2 example: 1 for the right number as the last thing said, a little for a call that ran."""

import re
from typing import Any, Final

_ANSWER: Final = re.compile(r"Answer:\s*(-?\d+)\.?\s*\Z")
_RESULT: Final = re.compile(r"</python>\n<result>\n-?\d+\n</result>\n")
FOR_A_CALL: Final = 0.1  # so that the samples of a question differ before the first right answer


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None, **_: Any) -> float:
    """verl's form of a reward function; `solution_str` is all behind the prompt, without special tokens."""
    found = _ANSWER.search(solution_str)
    if found is not None and int(found.group(1)) == int(ground_truth):
        return 1.0
    return FOR_A_CALL if _RESULT.search(solution_str) else 0.0
