"""Reads data sets as verl will, and says which rows it could not use."""

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_tool.errors import DataError
from verl_tool.preflight.request import DataFile, Request

MOST_FAULTS = 3  # told of one file
MOST_PROMPTS = 256  # of all files, the ones with the most characters: those are tokenised
ROLES = "system, user, assistant or tool"


@dataclass(order=True, frozen=True)
class Prompt:
    """A row's messages, and where they stand."""

    characters: int
    place: str
    messages: Sequence[Mapping[str, Any]] = field(compare=False)


class DataSets:
    """The rows of some files: how many, what is wrong with them, and the longest prompts."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._longest: list[Prompt] = []
        self.faults: list[str] = []

    @property
    def longest(self) -> list[Prompt]:
        """The prompts with the most characters, the longest first."""
        return sorted(self._longest, reverse=True)

    def read(self, files: Sequence[DataFile]) -> int:
        """The number of rows in all the files; faults are noted."""
        return sum(map(self._read_file, files))

    def _read_file(self, file: DataFile) -> int:
        rows, faults = 0, 0
        try:
            for index, row in enumerate(rows_of(Path(file.path), self._columns())):
                rows += 1
                if (wrong := self._wrong(row)) is None:
                    self._keep(row, f"{file.field}: row {index} of {file.path}")
                    continue
                faults += 1
                if faults <= MOST_FAULTS:
                    self.faults.append(f"{file.field}: row {index} of {file.path}: {wrong}")
        except DataError as fault:
            self.faults.append(f"{file.field}: {fault}")
            return rows
        if rows == 0:
            self.faults.append(f"{file.field}: {file.path} has no rows; a data set needs at least one")
        if faults > MOST_FAULTS:
            self.faults.append(f"{file.field}: {faults - MOST_FAULTS} more rows of {file.path} are as wrong")
        return rows

    def _columns(self) -> list[str]:
        return [self._request.prompt_key, self._request.source_key, "reward_model"]

    def _wrong(self, row: Mapping[str, Any]) -> str | None:
        request = self._request
        if (wrong := wrong_messages(row.get(request.prompt_key), request.prompt_key)) is not None:
            return wrong
        if not request.needs_ground_truth:
            return None
        if not isinstance(row.get(request.source_key), str):
            return f"{request.source_key} is {row.get(request.source_key)!r}; it names the data set, in text"
        reward_model = row.get("reward_model")
        if not isinstance(reward_model, Mapping) or "ground_truth" not in reward_model:
            return 'reward_model has no ground_truth; verl hands {"ground_truth": …} to the reward function'
        return None

    def _keep(self, row: Mapping[str, Any], place: str) -> None:
        messages = row[self._request.prompt_key]
        prompt = Prompt(sum(len(str(message["content"])) for message in messages), place, messages)
        if len(self._longest) < MOST_PROMPTS:
            heapq.heappush(self._longest, prompt)
        else:
            heapq.heappushpop(self._longest, prompt)


def wrong_messages(messages: Any, name: str = "prompt") -> str | None:
    """Why `messages` is no conversation that waits for the model's turn."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        what = "missing" if messages is None else f"{str(messages)[:60]!r}"
        return f'{name} is {what}; it is a list of messages, [{{"role": "user", "content": "…"}}]'
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            return f"{name}[{index}] is {str(message)[:60]!r}, not a message with role and content"
        if not isinstance(message.get("role"), str) or not message["role"]:
            return f"{name}[{index}].role is {message.get('role')!r}; write {ROLES}"
        if not isinstance(message.get("content"), str | list):
            return f"{name}[{index}].content is {message.get('content')!r}; write the message's text"
    return None


def rows_of(path: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows of a parquet or JSON file, in order. Raises DataError when it is no such file."""
    if path.suffix == ".parquet":
        yield from _parquet(path, columns)
    elif path.suffix in (".json", ".jsonl"):
        yield from _json(path)
    else:
        raise DataError(f"{path}: the name ends in {path.suffix!r}; verl reads .parquet, .json and .jsonl")


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            wanted = [name for name in columns if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=1024, columns=wanted):
                yield from (batch.to_pylist() if wanted else [{}] * batch.num_rows)
    except (pa.ArrowException, OSError) as fault:
        raise DataError(f"{path} cannot be read as parquet: {str(fault).splitlines()[0]}") from fault


def _json(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            start = file.read(1)
            file.seek(0)
            lines = enumerate(json.load(file) if start == "[" else file, start=1)
            for number, line in lines:
                if isinstance(line, str) and not line.strip():
                    continue
                row = json.loads(line) if isinstance(line, str) else line
                if not isinstance(row, dict):
                    raise DataError(f"{path}, line {number}: is no JSON object")
                yield row
    except json.JSONDecodeError as fault:
        raise DataError(f"{path} cannot be read as JSON: {fault}") from fault
    except (OSError, UnicodeDecodeError) as fault:
        raise DataError(f"{path} cannot be read: {fault}") from fault
