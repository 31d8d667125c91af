"""The sidecar: follows what a trainer writes anyway and feeds a `Reporter`, without a line of code in the job.

``rlvitals tail PATH…`` takes console logs, JSON lines, CSV, ``trainer_state.json``, event files and W&B's offline
files, or a folder to look for them in. It sees what the trainer logs and no more: no token, no ratio.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TextIO

from rlvitals.formats import json_rows, tfevents
from rlvitals.formats.console import Console
from rlvitals.formats.log import LINE_MAX, Format, Log, begun, check_file, is_packed, sniff
from rlvitals.formats.recode import recoded
from rlvitals.formats.row import BadLine, Reader, Row
from rlvitals.formats.steps import LoggedStep, StepMerger, stride
from rlvitals.reporter import Reporter
from rlvitals.screen import print_report, printable

_BY_APPENDING = (Format.CONSOLE, Format.JSON_LINES, Format.TFEVENTS)
POLL_S = 1.0
IDLE_S = 30.0
"""After so long without a new line a step that waits for more is taken as complete."""
KNOWN = ("trainer_state.json", "*.jsonl", "events.out.tfevents.*", "*.wandb", "*.log", "*.out", "*.txt")
FILES_MAX = 64


class Growing:
    """One file that somebody else writes. ``rows`` gives what was added since; a file that shrank is read anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._format: Format | None = None
        self._file: BinaryIO | None = None
        self._text: BinaryIO | None = None
        self._inode = self._line = self._seen = 0
        self._rest = b""
        self._packed = False
        self._reader: Reader = Console()

    def rows(self) -> Iterator[Row | BadLine]:
        """Raises OSError where it can't be read and ValueError where it is not of its format."""
        try:
            found = self.path.stat()
            check_file(self.path)
        except FileNotFoundError:
            yield from self.drain()
            raise
        if self._file is not None and (found.st_ino != self._inode or found.st_size < self._file.tell()):
            yield from self.drain()
        if self._format is None:
            if not found.st_size or not begun(self.path):
                return
            self._format, self._packed = sniff(self.path), is_packed(self.path)
            self._reader = json_rows.JsonLines() if self._format is Format.JSON_LINES else Console()
        if self._packed or self._format not in _BY_APPENDING:
            yield from self._again(found)
        else:
            yield from self._added(self._opened(found))

    def _added(self, file: BinaryIO) -> Iterator[Row | BadLine]:
        if self._format is Format.TFEVENTS:
            yield from tfevents.rows(file)
        else:
            self._text = self._text or recoded(file)
            yield from self._by_line(self._text)

    def settle(self) -> Iterator[Row | BadLine]:
        """What the reader still holds back for a continuation."""
        if self._file is not None:
            yield from self._reader.end()

    def drain(self) -> Iterator[Row | BadLine]:
        """What an open file still holds, also where its name is gone, with its last line; then closes it."""
        if self._file is not None:
            yield from self._added(self._file)
            if self._rest:
                yield from self._reader.read(self._line + 1, self._rest.decode("utf-8", "backslashreplace"))
            yield from self._reader.end()
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._text, self._format, self._rest, self._line, self._seen = None, None, None, b"", 0, 0

    def _opened(self, found: os.stat_result) -> BinaryIO:
        if self._file is None:
            self._file, self._inode = self.path.open("rb"), found.st_ino
        return self._file

    def _by_line(self, file: BinaryIO) -> Iterator[Row | BadLine]:
        while chunk := file.readline(LINE_MAX + 1):
            self._rest += chunk
            if not self._rest.endswith(b"\n") and len(self._rest) <= LINE_MAX:
                return
            self._line += 1
            text, self._rest = self._rest.decode("utf-8", "backslashreplace"), b""
            yield from self._reader.read(self._line, text)

    def _again(self, found: os.stat_result) -> Iterator[Row | BadLine]:
        """For files that are rewritten as a whole: what is new by its number of records."""
        if found.st_mtime_ns == self._inode:
            return
        self._inode = found.st_mtime_ns
        rows = list(Log.of(self.path, self._format).rows())
        yield from rows[self._seen :]
        self._seen = len(rows)


class Tail:
    """Follows files into a reporter; ``poll`` does one round and says how many steps it reported."""

    def __init__(
        self,
        paths: Sequence[Path],
        reporter: Reporter,
        *,
        stride: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.merger = StepMerger(stride)
        self.bad: list[BadLine] = []
        self.bad_count = 0
        self._files = [Growing(path) for path in paths]
        self._reporter, self._clock = reporter, clock
        self._idle_since = clock()

    def poll(self) -> int:
        """Reads what is new. A file that can't be read now is tried again at the next round."""
        steps = [step for file in self._files for item in self._read(file) for step in self._taken(item)]
        if steps:
            self._idle_since = self._clock()
        elif self._clock() - self._idle_since >= IDLE_S:
            steps = self.settle()
        self._report(steps)
        return len(steps)

    def finish(self) -> int:
        """Reports what still waits for more; the job has ended."""
        held = [
            step for file in self._files for item in self._read(file, ended=True) for step in self._taken(item)
        ]
        steps = held + list(self.merger.end())
        self._report(steps)
        return len(steps)

    def settle(self) -> list[LoggedStep]:
        held = [step for file in self._files for item in file.settle() for step in self._taken(item)]
        return held + list(self.merger.end())

    def _read(self, file: Growing, *, ended: bool = False) -> list[Row | BadLine]:
        found: list[Row | BadLine] = []
        try:
            found.extend(file.drain() if ended else file.rows())
        except (OSError, ValueError) as error:
            self._bad(BadLine.of(0, f"{file.path}: {error}", ""))
        return found

    def _taken(self, item: Row | BadLine) -> Iterator[LoggedStep]:
        if isinstance(item, Row):
            yield from self.merger.add(item)
        else:
            self._bad(item)

    def _bad(self, line: BadLine) -> None:
        if not line.line and line in self.bad:  # a file that is still not there is no further broken line
            return
        self.bad_count += 1
        if len(self.bad) < 20 and line not in self.bad:
            self.bad.append(line)
            where = f"line {line.line}: " if line.line else ""
            _say(f"rlvitals tail: {where}{line.reason} {line.text!r}".rstrip(" '"), sys.stderr)

    def _report(self, steps: Sequence[LoggedStep]) -> None:
        for step in steps:
            missing = dict.fromkeys(step.missing, "the trainer logged null")
            self._reporter.report(step.step, step.values, missing=missing)


def files(paths: Sequence[Path]) -> list[Path]:
    """The files meant by ``paths``; in a folder those that look like logs, the newest first."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = {file for pattern in KNOWN for file in path.rglob(pattern) if file.is_file()}
            found += sorted(inside, key=lambda file: (-file.stat().st_mtime, str(file)))
        else:
            found.append(path)
    return list(dict.fromkeys(found))[:FILES_MAX]


def main(argv: Sequence[str]) -> int:
    """0: the files were followed to their end; 2: there is nothing to follow."""
    told = _parser().parse_args(argv)
    absent = [path for path in told.paths if not path.exists()]
    chosen = files(told.paths)
    if absent or not chosen:
        what = ", ".join(map(str, absent)) or "no log in the folder"
        _say(f"rlvitals tail: expected a log file or a folder with logs: {what}", sys.stderr)
        return 2
    import rlvitals

    reporter = rlvitals.init(
        project=told.project, run=told.run, name=told.name or chosen[0].stem, framework="tail", url=told.url
    )
    follow(Tail(chosen, reporter, stride=told.every), reporter, once=told.once)
    return 0


def follow(tail: Tail, reporter: Reporter, *, once: bool, wait: Callable[[float], object] = time.sleep) -> None:
    """Polls until interrupted, or through once; says at the end what the log held."""
    steps = 0
    try:
        steps += tail.poll()
        while not once:
            wait(POLL_S)
            steps += tail.poll()
    except KeyboardInterrupt:
        pass
    steps += tail.finish()
    reporter.close()
    unknown = tail.merger.unknown
    _say(
        f"{steps} steps reported to run {reporter.run.id}, {tail.bad_count} broken lines, {tail.merger.late} late"
    )
    if unknown:
        _say(f"  kept under their own names: {', '.join(unknown[:20])}{' …' if len(unknown) > 20 else ''}")


def _say(text: str, where: TextIO | None = None) -> None:
    if where is None:
        print_report(f"{printable(text)}\n", "rlvitals tail", 0)
    else:
        where.write(f"{printable(text)}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals tail",
        description="Follow a trainer's own logs and report what they say; no code in the job.",
    )
    parser.add_argument("paths", nargs="+", type=Path, help="log files, or folders with logs")
    parser.add_argument("--once", action="store_true", help="read what is there and stop")
    parser.add_argument(
        "--every", type=stride, default=1, metavar="N", help="steps between lines that say no step"
    )
    parser.add_argument("--run", help="the run's id; the same id again is another attempt of the same run")
    parser.add_argument("--name", default="", help="the run's name (default: the file's)")
    parser.add_argument("--project", help="the project (default: as the client finds it)")
    parser.add_argument("--url", help="the service (default: as the client finds it)")
    return parser
