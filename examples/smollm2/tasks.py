"""Arithmetic from reasoning-gym, with a prompt that shows how to ask for Python, as rows of verl's data."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import reasoning_gym

SOURCES: Final[Mapping[str, Mapping[str, Any]]] = {
    "products": {"min_terms": 2, "max_terms": 2, "min_digits": 3, "max_digits": 4},
    "chain_sum": {"min_terms": 2, "max_terms": 3, "min_digits": 3, "max_digits": 4},
}

# So small a model follows what it is shown rather than what it is told: two conversations that went well say it all.
INSTRUCTION: Final = (
    "You solve arithmetic problems with Python. Write one print between <python> and </python>; its output comes back "
    "between <result> and </result>. Then repeat it behind 'Answer:'."
)
SHOWN: Final = (
    ("Solve the following multiplication: 417 * 68. Give only the result as your final answer.", "417 * 68"),
    ("State the final answer to the following arithmetic problem: 3104 - 955 + 27 =", "3104 - 955 + 27"),
)
SHOWN_RESULTS: Final = ("28356", "2176")


def few_shot(question: str) -> list[dict[str, str]]:
    """The prompt's messages: the instruction, the conversations that are shown, the question."""
    messages = [{"role": "system", "content": INSTRUCTION}]
    for (shown, expression), result in zip(SHOWN, SHOWN_RESULTS, strict=True):
        call = f"<python>print({expression})</python>\n<result>\n{result}\n</result>\nAnswer: {result}"
        messages += [{"role": "user", "content": shown}, {"role": "assistant", "content": call}]
    return [*messages, {"role": "user", "content": question}]


def make_rows(size: int, *, seed: int, split: str) -> list[dict[str, Any]]:
    """`size` rows in verl's columns, the sources in turn; other seeds and splits give other questions."""
    streams = [
        iter(reasoning_gym.create_dataset(source, seed=_first_item(seed, split), size=size, **settings))
        for source, settings in SOURCES.items()
    ]
    rows = []
    for index in range(size):
        source = list(SOURCES)[index % len(SOURCES)]
        item = next(streams[index % len(SOURCES)])
        rows.append(
            {
                "data_source": source,
                "prompt": few_shot(item["question"]),
                "ability": "arithmetic",
                "reward_model": {"style": "rule", "ground_truth": item["answer"]},
                "extra_info": {"index": index, "split": split, "question": item["question"]},
            }
        )
    return rows


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The rows as a file that verl's data loader reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def _first_item(seed: int, split: str) -> int:
    """reasoning-gym draws item i from the seed `seed + i`: splits are kept a million items apart."""
    return (2 * seed + (split == "validation")) * 1_000_000
