"""Reads a file of rows once, in bounded memory, and tells what is in it; broken rows are told and passed over."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from rlvitals.preflight.data_faults import DataFacts, Fault, Ledger
from rlvitals.preflight.data_fields import PROMPT_KEYS
from rlvitals.preflight.data_json import ElementSplitter
from rlvitals.preflight.data_lengths import LengthFacts
from rlvitals.preflight.data_lines import (
    LINE_MAX,
    OTHER_BOMS,
    OTHER_KINDS,
    UTF8_BOM,
    DataReadError,
    Line,
    Source,
)
from rlvitals.preflight.data_oddities import oddities, suspicious
from rlvitals.preflight.data_rows import DataOptions, Rows
from rlvitals.preflight.file_kind import check_regular

Progress = Callable[[int, "int | None"], None]
SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv")
_ESCAPED = re.compile(rb"\\[ubfr]")
"""Escapes behind which JSON may hide an oddity; ``\\\\frac`` with one backslash is a form feed."""
PROGRESS_ROWS, PEEKED = 256, 4096
ROWS_MAX = 20_000
"""Rows of a dataset in a job that are looked at: a start should not wait for minutes. Files are read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReading:
    """What reading a file gave: its facts, and the lengths of its prompts and answers."""

    facts: DataFacts
    prompts: LengthFacts
    answers: LengthFacts


def files_of(path: Path) -> list[Path]:
    """The path itself, or the known files of a folder (itself, if there are none) in the order of their names."""
    if not path.is_dir():
        return [path]
    return sorted(p for p in path.iterdir() if p.is_file() and format_of(p)) or [path]


def format_of(path: Path) -> str:
    """``.jsonl``, ``.json``, … by the name, with ``.gz`` taken off; empty for a name that is not known."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in SUFFIXES else ""


def read_file(path: Path, options: DataOptions | None = None, progress: Progress | None = None) -> DataReading:
    """Reads JSONL, JSON, CSV, TSV or Parquet, the first four also as ``.gz``. Never raises for what a file holds.

    ``progress`` is called now and then with the file's bytes (Parquet: rows) read so far and their total.
    """
    return _Reader(path, options or DataOptions(), progress).read()


def read_rows(rows: Iterable[object], name: str = "rows", options: DataOptions | None = None) -> DataReading:
    """The same for rows that are already in memory: the first `ROWS_MAX` of a list of mappings, of a dataset."""
    reader = _Reader(Path(name), options or DataOptions(), None)
    reader.unit = "row"
    for number, row in enumerate(islice(rows, ROWS_MAX), 1):
        reader.rows.add(number, row, repr(row).encode("utf-8", "backslashreplace"), look_inside=True)
    return reader.reading(0)


class _Reader:
    def __init__(self, path: Path, options: DataOptions, progress: Progress | None) -> None:
        self.path, self.progress = path, progress
        self.ledger = Ledger()
        self.rows = Rows(self.ledger, options)
        self.options = options
        self.unit = "line"
        self.quoted = False
        """Whether the format's own lines end with CRLF (RFC 4180)."""

    def read(self) -> DataReading:
        size = 0
        try:
            if self.path.is_dir():
                raise DataReadError(
                    f"a folder without data files: expected {', '.join(SUFFIXES)}, or one with .gz"
                )
            check_regular(self.path)
            size = self.path.stat().st_size
            if format_of(self.path) == ".parquet":
                self._read_parquet()
            else:
                self._read_text()
        except OSError as error:
            self.ledger.note(Fault.UNREADABLE, 0, str(error.strerror or error))
        except DataReadError as error:
            fault = Fault.STOPPED if self.rows.count else Fault.UNREADABLE
            self.ledger.note(fault, 0, str(error))
        return self.reading(size)

    def reading(self, size: int) -> DataReading:
        rows = self.rows
        rows.close()
        if not rows.count and not self.ledger.spots:
            self.ledger.note(Fault.NO_ROWS, 0, f"{size:,} bytes and not one row")
        limit = f"{self.options.row_tokens_max:,} tokens" if self.options.row_tokens_max else ""
        facts = DataFacts(
            name=str(self.path),
            unit=self.unit,
            size_bytes=size,
            rows=rows.count,
            spots=dict(self.ledger.spots),
            prompt_key=rows.columns.prompt if rows.columns else "",
            answer_key=rows.columns.answer if rows.columns else "",
            template=rows.templates.most_common(1)[0][0] if rows.templates else "",
            row_limit=limit,
            duplicates_sampled=rows.doubles.every > 1,
        )
        return DataReading(facts=facts, prompts=rows.prompts.facts(), answers=rows.answers.facts())

    # -- text -----------------------------------------------------------------------------------------------

    def _read_text(self) -> None:
        kind = format_of(self.path)
        with Source(self.path) as source:
            if kind == ".json" and not _is_lines(self.path):
                self._read_elements(source)
            elif kind in (".csv", ".tsv"):
                self.quoted = True
                self._read_table(source, "\t" if kind == ".tsv" else ",")
            else:
                for line, text in self._texts(source, source.lines()):
                    self._json_row(line, text)

    def _texts(self, source: Source, lines: Iterable[Line]) -> Iterator[tuple[Line, str]]:
        """Lines that are not blank, decoded; what the bytes themselves tell is noted on the way."""
        for count, line in enumerate(lines):
            if self.progress is not None and count % PROGRESS_ROWS == 0:
                self.progress(source.position(), source.size)
            if line.cut:
                self.ledger.note(Fault.LONG_LINE, line.number, f"more than {LINE_MAX >> 20} MiB")
                continue
            raw = self._without_bom(line) if line.offset == 0 else line.raw
            if raw.endswith(b"\r\n") and not self.quoted:
                self.ledger.note(Fault.CRLF, line.number)
            raw = raw.rstrip(b"\r\n")
            if raw.strip():
                shift = len(line.raw.rstrip(b"\r\n")) - len(raw)
                yield Line(line.number, line.offset + shift, raw), self._decode(line, raw, shift)

    def _without_bom(self, line: Line) -> bytes:
        for bom, name in OTHER_BOMS.items():
            if line.raw.startswith(bom):
                raise DataReadError(f"it is {name}, not UTF-8 (it begins with {bom.hex(' ')})")
        for begin, name in OTHER_KINDS.items():
            if line.raw.startswith(begin):
                raise DataReadError(f"it is {name}")
        if line.raw[:64:2].count(0) > 16 or line.raw[1:64:2].count(0) > 16:
            raise DataReadError("it looks like UTF-16 without a byte order mark, not UTF-8")
        if line.raw.startswith(UTF8_BOM):
            self.ledger.note(Fault.BOM_AT_START, line.number, "ef bb bf at byte 0")
            return line.raw[len(UTF8_BOM) :]
        return line.raw

    def _decode(self, line: Line, raw: bytes, shift: int) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            broken = raw[error.start : max(error.end, error.start + 1)]
            where = f"byte {line.offset + shift + error.start:,} of the file: {broken[:8].hex(' ')}"
            self.ledger.note(Fault.INVALID_UTF8, line.number, f"{where} ({error.reason})")
            return raw.decode("utf-8", "ignore")

    def _json_row(self, line: Line, text: str) -> None:
        odd = suspicious(line.raw)
        try:
            value: Any = json.loads(text)
        except RecursionError:
            self.ledger.note(Fault.BROKEN_ROW, line.number, "nested too deeply")
        except ValueError as error:
            self.ledger.note(Fault.BROKEN_ROW, line.number, _told(error))
            if odd:
                self._scan_text(line.number, text)
        else:
            self.rows.add(line.number, value, line.raw, look_inside=odd or _ESCAPED.search(line.raw) is not None)

    def _scan_text(self, number: int, text: str) -> None:
        for fault, detail in oddities(text).items():
            self.ledger.note(fault, number, detail)

    def _read_elements(self, source: Source) -> None:
        splitter = ElementSplitter()
        chunks = source.chunks()
        first = next(chunks, b"")
        kept = self._without_bom(Line(1, 0, first))
        for line, text in self._texts(source, splitter.feed(_chain(kept, chunks))):
            self._json_row(line, text)
        if splitter.broken:
            self.ledger.note(Fault.BROKEN_ROW, 0, splitter.broken)
        elif not self.rows.count and not self.ledger.spots:
            raise DataReadError("no list of rows in it: expected [{…}, …] or {“name”: [{…}, …]}")

    def _read_table(self, source: Source, delimiter: str) -> None:
        with _long_fields():
            reader = csv.reader(self._table_lines(source), delimiter=delimiter)
            header: list[str] | None = None
            while True:
                begins = reader.line_num + 1
                try:
                    fields = next(reader)
                except StopIteration:
                    return
                except csv.Error as error:
                    self.ledger.note(Fault.BROKEN_ROW, begins, str(error))
                    continue
                if header is None:
                    header = fields
                elif fields:
                    self._table_row(begins, header, fields)

    def _table_lines(self, source: Source) -> Iterator[str]:
        lines = source.lines()
        expected = 1
        for line, text in self._texts(source, lines):
            # blank lines belong to a quoted field or to nothing; the reader counts them all the same
            yield from ("\n" for _ in range(line.number - expected))
            expected = line.number + 1
            if suspicious(line.raw):
                self._scan_text(line.number, text)
            yield text + "\n"

    def _table_row(self, number: int, header: list[str], fields: list[str]) -> None:
        if len(fields) != len(header):
            self.ledger.note(Fault.BROKEN_ROW, number, f"{len(fields)} fields, the header has {len(header)}")
            return
        raw = "\x1f".join(fields).encode("utf-8", "surrogatepass")
        self.rows.add(number, dict(zip(header, fields, strict=True)), raw, look_inside=False)

    # -- Parquet --------------------------------------------------------------------------------------------

    def _read_parquet(self) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ModuleNotFoundError as error:
            raise DataReadError(
                "Parquet is read by pyarrow, which is not installed: pip install 'rlvitals[check]'"
            ) from error
        self.unit = "row"
        try:
            with pyarrow.parquet.ParquetFile(self.path) as file:
                total, number = file.metadata.num_rows, 0
                for batch in file.iter_batches(batch_size=PROGRESS_ROWS):
                    for at in range(batch.num_rows):
                        number += 1
                        self._parquet_row(number, batch, at)
                    if self.progress is not None:
                        self.progress(number, total)
        except pyarrow.ArrowException as error:
            raise DataReadError(f"Parquet: {str(error).splitlines()[0]}") from error

    def _parquet_row(self, number: int, batch: Any, at: int) -> None:
        try:
            (row,) = batch.slice(at, 1).to_pylist()
        except UnicodeDecodeError as error:
            broken = error.object[error.start : error.end]
            self.ledger.note(Fault.INVALID_UTF8, number, f"{broken[:8].hex(' ')} ({error.reason})")
            return
        self.rows.add(number, row, repr(row).encode("utf-8", "backslashreplace"), look_inside=True)


def _is_lines(path: Path) -> bool:
    """Whether a ``.json`` file holds one object a line, as many data sets do."""
    with Source(path) as source:
        try:
            if next(source.chunks(PEEKED), b"").removeprefix(UTF8_BOM).lstrip()[:1] == b"[":
                return False
            source.stream.seek(0)
            lines = (line for line in source.lines() if line.raw.strip())
            first = next(lines, None)
            if first is None or first.cut:
                return False
            second = next(lines, None)
        except DataReadError:
            return True
    try:
        row = json.loads(first.raw.removeprefix(UTF8_BOM).decode("utf-8", "ignore"))
    except (ValueError, RecursionError):
        return False
    return isinstance(row, Mapping) and (second is not None or not _holds_rows(row))


def _holds_rows(row: Mapping[str, object]) -> bool:
    """Whether a lone object is a wrapper around a list of rows, and not itself a row with a dialogue."""
    lists = (item for key, item in row.items() if key not in PROMPT_KEYS and isinstance(item, list))
    return any(item and isinstance(item[0], Mapping) for item in lists)


def _chain(first: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


@contextmanager
def _long_fields() -> Iterator[None]:
    """The csv module's limit is one for the process: set, and set back."""
    before = csv.field_size_limit(LINE_MAX)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _told(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at column {error.colno}"
    return str(error)
