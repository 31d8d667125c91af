"""Dumped completions beside the logs: which files there are, which are whole, and what each tells, by step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlvitals.formats.dumps import Incomplete, is_dump, read_dump, step_of_name
from rlvitals.formats.row import BadLine
from rlvitals.guard import attempt, outcome

if TYPE_CHECKING:
    from rlvitals.integrations.dumps import DumpReader, Texts

RESCAN_S = 10.0
"""Seconds between two searches for folders with dumps; those that are known are looked at in every round."""
_EVALUATED = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|eval|evaluation)(?:[^a-z]|$)")
"""Folders of evaluations' completions, as verl's ``validation_data_dir``: those are of no training step,
unless such a folder is named itself."""
_PATTERNS = ("*.jsonl", "completions_*.parquet")


class Dumps:
    """``paths`` are files and folders, ``tokenizer`` a path or a name, ``texts`` whether completions are shown.

    A file is read when it has not changed between two rounds, or when there is one of a later step.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        tokenizer: str | None = None,
        texts: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.late = 0
        self.passed: int | None = None
        """The last step that was reported."""
        self._paths, self._tokenizer, self._texts, self._clock = tuple(paths), tokenizer, texts, clock
        self._folders: set[Path] = set()
        self._searched_s = -RESCAN_S
        self._sizes: dict[Path, tuple[int, int]] = {}
        self._done: set[Path] = set()
        self._waiting: dict[int, Path] = {}
        self._faults: list[str] = []
        self._reader: DumpReader | None = None

    def any(self) -> bool:
        """Whether there is a dump by now."""
        return next(self._files(), None) is not None

    def prepare(self) -> str:
        """Loads the tokenizer, once there is a need; what is wrong with it, or ""."""
        if self._reader is not None or not (self._tokenizer or self.any()):
            return ""
        try:
            from rlvitals.integrations.dumps import DumpReader
        except ImportError as error:
            return f"dumped completions need more: {error}. Install it with: pip install 'rlvitals[probes]'"
        loaded, error_text = outcome(_load, self._tokenizer) if self._tokenizer else (None, "")
        if error_text:
            return f"--tokenizer {self._tokenizer}: {error_text}"
        self._reader = DumpReader(tokenizer=loaded, keep=self._texts)
        return ""

    def look(self, *, ended: bool) -> Iterator[BadLine]:
        """Takes note of what is whole by now; ``ended``: of all there is. Gives what was wrong with those read."""
        files = sorted((path for path in self._files() if path not in self._done), key=_by_step)
        for place, path in enumerate(files):
            if not (ended or place + 1 < len(files) or self._rests(path)):
                continue
            self._done.add(path)
            step = step_of_name(path) or 0
            if self.passed is not None and step <= self.passed:
                self.late += 1
            elif step in self._waiting:
                self._faults.append(f"{path}: step {step} has a dump already, {self._waiting[step]}")
            else:
                self._waiting[step] = path
        faults, self._faults = self._faults, []
        yield from (BadLine.of(0, fault, "") for fault in faults)

    def take(self, step: int) -> Texts | None:
        """What the dump of ``step`` tells, once; None where there is none or it can't be read."""
        path = self._waiting.pop(step, None)
        if path is None:
            return None
        fault, texts = self.prepare(), None
        try:
            if self._reader is not None and not fault:
                dump = read_dump(path)
                # what a trainer dumped may be anything: a step of it is lost, not the rest of the run
                texts, fault = outcome(self._reader.read, dump)
                fault = fault and f"{path}: {fault}"
        except ModuleNotFoundError as error:
            fault = f"{path}: {error}. Install it with: pip install pyarrow"
        except (Incomplete, OSError) as error:
            fault = str(error)
        except (ValueError, RecursionError) as error:
            fault = f"{path}: {error}"
        if texts is None:
            self._faults.append(fault)
        return texts

    def waiting(self, before: int | None) -> list[int]:
        """Steps below ``before`` (None: all) whose dumps have not been taken, in order."""
        return sorted(step for step in self._waiting if before is None or step < before)

    def _files(self) -> Iterator[Path]:
        now = self._clock()
        if now - self._searched_s >= RESCAN_S:
            self._searched_s = now
            inside = (f for p in self._paths if p.is_dir() for pattern in _PATTERNS for f in p.rglob(pattern))
            found = {file.parent for file in inside if step_of_name(file) is not None}
            self._folders |= {f for f in found if f in self._paths or not _EVALUATED.search(f.name.lower())}
        own = [path for path in self._paths if not path.is_dir()]
        # folders may go between two looks at them
        there = [file for folder in self._folders for file in attempt(_inside, folder) or ()]
        for path in (*own, *there):
            if step_of_name(path) is not None and (path in self._done or is_dump(path)):
                yield path

    def _rests(self, path: Path) -> bool:
        found = attempt(path.stat)
        if found is None:  # it has just gone
            return False
        now = (found.st_size, found.st_mtime_ns)
        before, self._sizes[path] = self._sizes.get(path), now
        return now == before


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def _by_step(path: Path) -> tuple[int, str]:
    return step_of_name(path) or 0, str(path)


def _load(name: str) -> Any:
    """A tokenizer's file or folder, or what a hub calls it."""
    file = Path(name) / "tokenizer.json" if Path(name).is_dir() else Path(name)
    try:
        from transformers import AutoTokenizer
    except ImportError:
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(file))
    if file.suffix == ".json" and not Path(name).is_dir():
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(file))
    return AutoTokenizer.from_pretrained(name)
