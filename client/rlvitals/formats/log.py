"""One log, whatever it is: sniffed by its first bytes, read as a stream."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import BinaryIO, cast

from rlvitals.formats import csv_rows, json_rows, mlflow_files, parquet_rows, sqlite_rows, tfevents, wandb_offline
from rlvitals.formats.console import Console
from rlvitals.formats.recode import recoded
from rlvitals.formats.row import BadLine, Reader, Row

SNIFFED = 1 << 16
DOCUMENT_MAX = 1 << 29
LINE_MAX = 1 << 20
_GZIP = b"\x1f\x8b"
_DOCUMENT = re.compile(r"\s*(?:\{\s*\"|\[\s*\{\s*\")")
_HEADER = re.compile(r"[^{}:\[\]=]+")


class Format(str, Enum):
    """Kinds of logs."""

    CONSOLE = "console"
    JSON_LINES = "JSON lines"
    JSON = "JSON document"
    CSV = "CSV"
    TFEVENTS = "TensorBoard events"
    WANDB = "W&B offline"
    SQLITE = "SQLite tracker"
    MLFLOW = "MLflow file store"
    PARQUET = "Parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A file with its format. ``rows`` reads it as a stream, in bounded memory but for a JSON document."""

    path: Path
    format: Format

    @classmethod
    def of(cls, path: Path, form: Format | None = None) -> Log:
        """Sniffs the format unless it is given. Raises OSError where the file can't be read, ValueError where it
        is none: a log is opened more than once, and a pipe gives what it holds only once."""
        if path.is_dir() and mlflow_files.is_store(path):
            return cls(path=path, format=Format.MLFLOW)
        check_file(path)
        return cls(path=path, format=form or sniff(path))

    def rows(
        self, run: str | None = None, seen: Callable[[int], object] = lambda _: None
    ) -> Iterator[Row | BadLine]:
        """What is logged, in order; ``seen`` is told the bytes read, ``run`` chooses among a tracker's runs.

        Raises ValueError where the file is not of its format.
        """
        by_path = _BY_PATH.get(self.format)
        if by_path is not None:
            yield from by_path(self.path, run)
            return
        with _opened(self.path) as file:
            if self.format is Format.TFEVENTS:
                yield from tfevents.rows(file)
            elif self.format is Format.WANDB:
                yield from wandb_offline.rows(file)
            elif self.format is Format.JSON:
                yield from json_rows.document(_whole(file))
            elif self.format is Format.CSV:
                yield from csv_rows.rows(text for _, text in lines(file, seen))
            else:
                yield from _by_line(
                    file, seen, Console() if self.format is Format.CONSOLE else json_rows.JsonLines()
                )


_BY_PATH = {
    Format.SQLITE: sqlite_rows.rows,
    Format.MLFLOW: mlflow_files.rows,
    Format.PARQUET: parquet_rows.rows,
}


def check_file(path: Path) -> None:
    """Raises ValueError for a folder, a pipe or a device, OSError where there is nothing."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path}: a log file was expected, or a folder with a run of MLflow")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path}: a log file was expected; write what a pipe gives to one")


def lines(file: BinaryIO, seen: Callable[[int], object] = lambda _: None) -> Iterator[tuple[int, str]]:
    """(number, text) of each line; bytes that are no UTF-8 are spelt out, a line beyond the bound is cut."""
    read = 0
    for number in itertools.count(1):
        raw = file.readline(LINE_MAX + 1)
        if not raw:
            return
        read += len(raw)
        while len(raw) > LINE_MAX and not raw.endswith(b"\n"):
            more = file.readline(LINE_MAX)
            read += len(more)
            seen(read)
            if not more or more.endswith(b"\n"):
                break
        if number % 1000 == 0:
            seen(read)
        yield number, raw.decode("utf-8", "backslashreplace")


def sniff(path: Path) -> Format:
    """What kind of log this is, by its first 64 KiB."""
    with _opened(path) as file:
        head = file.read(SNIFFED)
    if head.startswith(wandb_offline.MAGIC):
        return Format.WANDB
    if head.startswith(sqlite_rows.MAGIC):
        return Format.SQLITE
    if head.startswith(parquet_rows.MAGIC):
        return Format.PARQUET
    if "tfevents" in path.name or _is_events(head):
        return Format.TFEVENTS
    return _text_format(head.decode("utf-8", "replace").lstrip("\ufeff"))


def _text_format(head: str) -> Format:
    begun = [line for line in head.splitlines()[:50] if line.strip()]
    if not begun:
        return Format.CONSOLE
    first = begun[0].strip()
    record = _object(first) if first.startswith("{") else None
    if record is not None:
        return (
            Format.JSON if any(isinstance(record.get(n), list) for n in json_rows.HISTORIES) else Format.JSON_LINES
        )
    if _DOCUMENT.match(head):
        return Format.CONSOLE if _is_series(head) else Format.JSON
    below = (*begun, "")[1]
    counts = [(first.count(mark), below.count(mark)) for mark in ",;"]
    separated = any(header and header == row for header, row in counts)
    return Format.CSV if separated and _HEADER.fullmatch(first) else Format.CONSOLE


def _is_series(head: str) -> bool:
    """Whether one printed object follows another: many documents, and not one."""
    text = head.lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text[end:].lstrip().startswith("{")


def _object(text: str) -> dict[str, object] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_events(head: bytes) -> bool:
    return len(head) > 24 and head[8:12] != b"" and head[12:13] == b"\x09" and b"brain.Event" in head[:64]


def is_packed(path: Path) -> bool:
    """Whether a file is gzip, whatever its name says."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def begun(path: Path) -> bool:
    """Whether a file that grows holds enough to tell its format: a whole first line, or a whole document."""
    with path.open("rb") as file:
        head = file.read(SNIFFED)
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    cut = text.startswith((b"{", b"[")) and b"\n" not in text and len(head) < SNIFFED
    return not cut or _object(text.decode("utf-8", "replace")) is not None


def _opened(path: Path) -> BinaryIO:
    file = path.open("rb")
    if file.read(len(_GZIP)) == _GZIP:
        file.close()
        return recoded(cast("BinaryIO", io.BufferedReader(gzip.GzipFile(path))))
    file.seek(0)
    return recoded(file)


def _whole(file: BinaryIO) -> str:
    data = file.read(DOCUMENT_MAX + 1)
    if len(data) > DOCUMENT_MAX:
        raise ValueError(f"a document of at most {DOCUMENT_MAX >> 20} MiB was expected; write JSON lines instead")
    return data.decode("utf-8", "replace")


def _by_line(file: BinaryIO, seen: Callable[[int], object], reader: Reader) -> Iterator[Row | BadLine]:
    for number, text in lines(file, seen):
        yield from reader.read(number, text)
    yield from reader.end()
