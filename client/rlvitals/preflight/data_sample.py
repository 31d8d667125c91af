"""A bounded sample of texts from files or rows, for the checks that need the tokenizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rlvitals.guard import outcome
from rlvitals.preflight.data_fields import Columns, example
from rlvitals.preflight.data_lines import Source
from rlvitals.preflight.passage import Passage

ROWS_SAMPLED = 256
"""First rows of each file or dataset that go through the tokenizer."""
TEXT_CHARS = 100_000
"""Longer texts don't."""


def read_passages(data: Any, rows: int = ROWS_SAMPLED) -> tuple[Passage, ...]:
    """Texts of the first rows of paths (JSON lines) or of a dataset or list of rows.

    What can't be read here gives no passage: the checks of the data files tell it.
    """
    if data is None:
        return ()
    found, _ = outcome(
        lambda: tuple(
            passage for row in _rows(data, rows) for passage in _of_row(*row) if len(passage.text) <= TEXT_CHARS
        )
    )
    return found or ()


def _rows(data: Any, limit: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    if isinstance(data, str | Path):
        yield from _of_file(Path(data), limit)
    elif iter(data) is not data:  # an iterator is the trainer's to consume
        for number, row in enumerate(islice(data, limit), 1):
            if isinstance(row, str | Path):
                yield from _of_file(Path(row), limit)
            elif isinstance(row, Mapping):
                yield f"row {number}", row


def _of_file(path: Path, limit: int) -> Iterator[tuple[str, Mapping[str, object]]]:
    if path.suffix == ".gz" or path.suffix not in (".jsonl", ".ndjson"):
        return
    with Source(path) as source:
        for line in islice(source.lines(), limit):
            row = outcome(json.loads, line.raw)[0]
            if isinstance(row, Mapping):
                yield f"{path.name}:{line.number}", row


def _of_row(where: str, row: Mapping[str, object]) -> Iterable[Passage]:
    columns = Columns.of(row)
    found = example(row, columns)
    for part, key, role in ((found.prompt, columns.prompt, "prompt"), (found.answer, columns.answer, "assistant")):
        if isinstance(part, str):
            yield Passage(text=part, role="" if found.whole else role, where=f"{where} {key}")
        elif part is not None:
            for turn, (speaker, text) in enumerate(part, 1):
                yield Passage(text=text, role=speaker, where=f"{where} {key}[{turn}]")
