"""The bytes of a file as bounded lines, each with its number and offset; gzip is opened on the way."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, cast

from rlvitals.preflight.file_kind import check_regular

LINE_MAX = 8 << 20
"""Bytes of a line (or of an element of a JSON array) that are looked at; what is longer is counted, not read."""
BOMB_BYTES, BOMB_RATIO = 256 << 20, 200
"""Compressed text shrinks by 3 to 30; what unfolds 200-fold beyond 256 MiB is no text."""
UTF8_BOM = b"\xef\xbb\xbf"
OTHER_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
OTHER_KINDS = {
    b"\x1f\x8b": "gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "Zstandard: unpack it first",
    b"\xfd7zXZ\x00": "xz: unpack it first",
    b"BZh91AY&SY": "bzip2: unpack it first",
    b"PK\x03\x04": "a ZIP archive: unpack it first",
    b"PAR1\x15": "Parquet: let its name end in .parquet",
    b"ARROW1\x00\x00": "Arrow: load it as a dataset, or write Parquet",
    b"SQLite format 3": "an SQLite database: export its rows",
}
"""How files begin that are no text, whatever their name says."""
BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


class DataReadError(Exception):
    """The rest of a file can't be read. The text says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """``number`` from 1; ``offset`` of its first byte in the unpacked file; ``cut`` if it is beyond `LINE_MAX`."""

    number: int
    offset: int
    raw: bytes
    cut: bool = False


class Source:
    """An open file, unpacked where its name ends in ``.gz``. Raises OSError where it is no regular file."""

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self.path = path
        self.size = path.stat().st_size
        self._file = path.open("rb")
        self._gzip = path.suffix.lower() == ".gz"
        self.stream: IO[bytes] = self._file
        if self._gzip:
            self.stream = cast(IO[bytes], gzip.GzipFile(fileobj=self._file, mode="rb"))

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stream.close()
        self._file.close()

    def position(self) -> int:
        """Bytes of the file itself that are read, to compare with ``size``."""
        return self._file.tell()

    def check_growth(self, unpacked: int) -> None:
        """Raises DataReadError for a file that unfolds beyond all measure."""
        if self._gzip and unpacked > BOMB_BYTES and unpacked > BOMB_RATIO * max(1, self.position()):
            raise DataReadError(
                f"unfolds to more than {BOMB_RATIO} times its size ({unpacked >> 20} MiB so far): not read further"
            )

    def lines(self) -> Iterator[Line]:
        """Every line with its end. Raises DataReadError where a gzip file is broken or has no end."""
        offset, number = 0, 0
        try:
            while raw := self.stream.readline(LINE_MAX):
                number += 1
                cut = len(raw) == LINE_MAX and not raw.endswith(b"\n")
                yield Line(number, offset, raw, cut)
                offset += len(raw) + (self._skip_rest(offset) if cut else 0)
                self.check_growth(offset)
        except BROKEN_GZIP as error:
            raise DataReadError(f"gzip: {error} after {offset} bytes") from error

    def chunks(self, size: int = 1 << 20) -> Iterator[bytes]:
        """All bytes. Raises DataReadError as `lines` does."""
        read = 0
        try:
            while chunk := self.stream.read(size):
                yield chunk
                read += len(chunk)
                self.check_growth(read)
        except BROKEN_GZIP as error:
            raise DataReadError(f"gzip: {error} after {read} bytes") from error

    def _skip_rest(self, offset: int) -> int:
        skipped = 0
        while raw := self.stream.readline(LINE_MAX):
            skipped += len(raw)
            self.check_growth(offset + skipped)
            if raw.endswith(b"\n"):
                break
        return skipped
