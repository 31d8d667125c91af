"""Completions that trainers write out: one file a step, a record a completion, decoded text.

verl's ``<step>.jsonl`` (``trainer.rollout_data_dir``) has input, output and score; TRL's
``completions_<step>.parquet`` (``log_completions``) prompt, completion and one column a reward function, and needs
pyarrow. Special tokens and token ids are in neither.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_JSON_LINES = re.compile(r"(?:.*[_-])?(\d+)\.jsonl")
_PARQUET = re.compile(r"completions_(\d+)\.parquet")
PROMPTS, COMPLETIONS = ("input", "prompt", "question"), ("output", "completion", "response", "answer")
SCORES = ("score", "reward", "rewards")
_NO_REWARD = frozenset({"step", "advantage", "global_step", "epoch"})
BYTES_MAX = 1 << 30


class Incomplete(ValueError):
    """The file does not hold what it will; it is still being written, or it is no dump."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """One step's completions. ``rewards`` maps names of reward functions to a value each, NaN where there is none;
    empty where the file has no rewards. ``prompts`` and ``completions`` are texts.
    """

    step: int
    path: Path
    prompts: Sequence[str]
    completions: Sequence[str]
    rewards: Mapping[str, Sequence[float]]


def step_of_name(path: Path) -> int | None:
    """The step in a dump's name, None for a file that is none by its name."""
    found = _PARQUET.fullmatch(path.name) or _JSON_LINES.fullmatch(path.name)
    return int(found[1]) if found is not None else None


def is_dump(path: Path) -> bool:
    """Whether a file is a dump: by its name, and JSON lines by their first record too."""
    if step_of_name(path) is None or not path.is_file():  # to open a pipe is to wait for its writer
        return False
    if path.suffix == ".parquet":
        return True
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = json.loads(file.readline(BYTES_MAX))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and any(isinstance(first.get(name), str) for name in COMPLETIONS)


def read_dump(path: Path) -> Dump:
    """Raises `Incomplete` where records or the file's end are missing, OSError where it can't be read, and
    ModuleNotFoundError without pyarrow.
    """
    records = _parquet(path) if path.suffix == ".parquet" else _json_lines(path)
    if not records:
        raise Incomplete(f"{path}: completions were expected")
    step = next((r["step"] for r in records if isinstance(r.get("step"), int)), step_of_name(path))
    return Dump(
        step=0 if step is None else int(step),
        path=path,
        prompts=[_text(record, PROMPTS) for record in records],
        completions=[_text(record, COMPLETIONS) for record in records],
        rewards=_rewards(records),
    )


def _json_lines(path: Path) -> list[dict[str, Any]]:
    if path.stat().st_size > BYTES_MAX:
        raise Incomplete(f"{path}: a dump of at most {BYTES_MAX >> 20} MiB was expected")
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        found = [json.loads(line) for line in text.split("\n") if line.strip()]
    except (ValueError, RecursionError) as error:
        raise Incomplete(f"{path}: a JSON object a line was expected: {error}") from error
    if not all(isinstance(record, dict) for record in found):
        raise Incomplete(f"{path}: a JSON object a line was expected")
    return found


def _parquet(path: Path) -> list[dict[str, Any]]:
    from pyarrow import ArrowInvalid, parquet

    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise Incomplete(f"{path}: {error}") from error
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def _text(record: Mapping[str, Any], names: Sequence[str]) -> str:
    value = next((record[name] for name in names if record.get(name) is not None), "")
    return plain(value)


def plain(value: Any) -> str:
    """A text, or what a conversation says."""
    if isinstance(value, Mapping):
        return plain(value.get("content", value.get("text", "")))
    if isinstance(value, (list, tuple)):
        return "\n".join(map(plain, value))
    return _whole_characters(value) if isinstance(value, str) else ""


def _whole_characters(text: str) -> str:
    """JSON may hold halves of characters, which no tokenizer takes: U+FFFD in their place, as a decoder has it."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _rewards(records: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """verl's score; else the columns of floats, of several those that are called rewards."""
    named = next((name for name in SCORES if any(_is_number(r.get(name)) for r in records)), None)
    if named is not None:
        return {named: [_number(record.get(named)) for record in records]}
    names = dict.fromkeys(name for record in records for name in record if name not in _NO_REWARD)
    columns = [name for name in names if {type(r.get(name)) for r in records} in ({float}, {float, type(None)})]
    if len(columns) > 1:
        columns = [name for name in columns if "reward" in name.lower()]
    return {name: [_number(record.get(name)) for record in records] for name in columns}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _number(value: Any) -> float:
    """NaN where a reward function gave none, an infinity where a whole number is beyond all floats."""
    if not _is_number(value) and not isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
