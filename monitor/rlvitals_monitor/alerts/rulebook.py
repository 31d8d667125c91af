"""The rules in force: read again when a file of theirs changes; the last good ones stay while a file is bad."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rlvitals.contract.rulebook import RuleBookView
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule

PROBLEMS_MAX = 50

Stamp = tuple[tuple[int, int, int], ...]

log = logging.getLogger(__name__)


class RuleBook:
    """``rules`` are those in force; `refresh` looks at the files. Any thread may call either.

    Raises `RuleFileError` at its beginning, where there are no good rules to go on with.
    """

    def __init__(self, files: Sequence[Path], now: datetime) -> None:
        self._files = tuple(files)
        self._turn = threading.Lock()
        self._stamp = _stamp(self._files)
        self._rules = load_rules(self._files)
        self._view = self._good(now)

    @classmethod
    def of(cls, settings: RuleSettings, now: datetime) -> RuleBook:
        """The catalogue with the operator's files on top."""
        return cls([path.expanduser() for path in settings.rules], now)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    @property
    def view(self) -> RuleBookView:
        return self._view

    def refresh(self, now: datetime) -> tuple[Rule, ...]:
        """The rules in force after a look at the files."""
        with self._turn:
            stamp = _stamp(self._files)
            if stamp != self._stamp:
                self._stamp = stamp
                self._read(now)
        return self._rules

    def _read(self, now: datetime) -> None:
        try:
            self._rules = load_rules(self._files)
        except RuleFileError as error:
            problems = error.problems[:PROBLEMS_MAX]
            self._view = RuleBookView(
                rules=len(self._rules),
                loaded_at=self._view.loaded_at,
                files=self._view.files,
                problems=problems,
                failed_at=self._view.failed_at or now,
            )
            log.error("rule files are not in force, the last good ones go on:\n%s", "\n".join(problems))
        else:
            self._view = self._good(now)
            log.info("%d rules are in force", len(self._rules))

    def _good(self, now: datetime) -> RuleBookView:
        return RuleBookView(rules=len(self._rules), loaded_at=now, files=tuple(map(str, self._files)))


def _stamp(files: Sequence[Path]) -> Stamp:
    return tuple(_stamp_of(path) for path in files)


def _stamp_of(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written or replaced; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)
