"""The rules in force: read again when a file or the edited document changes; the last good ones stay while one is
bad."""

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
from rlvitals_monitor.store import edited_rules
from rlvitals_monitor.store.engine import Store

PROBLEMS_MAX = 50

Stamp = tuple[tuple[int, int, int], ...]

log = logging.getLogger(__name__)


class RuleBook:
    """``rules`` are those in force; `refresh` looks at the files, and at the ``store`` for the edited document.
    Any thread may call either.

    Raises `RuleFileError` at its beginning, where there are no good rules to go on with.
    """

    def __init__(self, files: Sequence[Path], now: datetime, store: Store | None = None) -> None:
        self._files, self._store = tuple(files), store
        self._turn = threading.Lock()
        self._stamp = _stamp(self._files)
        self._number, self._edited = edited_rules.NONE, ""
        self._rules = load_rules(self._files)
        self._view = self._good(now)

    @classmethod
    def of(cls, settings: RuleSettings, now: datetime, store: Store | None = None) -> RuleBook:
        """The catalogue with the operator's files on top."""
        return cls([path.expanduser() for path in settings.rules], now, store)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    @property
    def view(self) -> RuleBookView:
        return self._view

    def refresh(self, now: datetime) -> tuple[Rule, ...]:
        """The rules in force after a look at the files and at the number of the edited document."""
        with self._turn:
            stamp, edited = _stamp(self._files), self._look()
            if stamp != self._stamp or edited is not None:
                self._stamp = stamp
                if edited is not None:
                    self._number, self._edited = edited.number, edited.text
                self._read(now)
        return self._rules

    def over(self, text: str) -> tuple[Rule, ...]:
        """The rules that would be in force with ``text`` as the edited document. Raises `RuleFileError`."""
        return load_rules(self._files, text)

    def _look(self) -> edited_rules.Version | None:
        """The edited document, where it is another than the one that was read."""
        if self._store is None:
            return None
        with self._store.read() as connection:
            number = edited_rules.newest_number(connection)
            return None if number == self._number else edited_rules.find(connection, number)

    def _read(self, now: datetime) -> None:
        try:
            self._rules = load_rules(self._files, self._edited)
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
