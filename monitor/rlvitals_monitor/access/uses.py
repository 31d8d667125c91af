"""When tokens, sessions, people and shared links were last used: noted in memory, written once a minute.

So no request pays for it, least of all a trainer's report. A crash loses a minute of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from types import ModuleType

from sqlalchemy.exc import SQLAlchemyError

from rlvitals.contract.access import AccessKind
from rlvitals_monitor.access.pace import WINDOW
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.store import entries, refusals, sessions, shares, tokens, users
from rlvitals_monitor.store.engine import Store

EVERY_S = 60.0
SWEEP_EVERY = timedelta(hours=1)

_SESSIONS = "session"
_BOOKS: Mapping[str, ModuleType] = {
    AccessKind.TOKEN.value: tokens,
    AccessKind.USER.value: users,
    AccessKind.SHARE.value: shares,
    _SESSIONS: sessions,
}
log = logging.getLogger(__name__)


class Uses:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[tuple[str, str], datetime] = {}

    def note(self, who: Principal, now: datetime) -> None:
        with self._lock:
            self._noted[who.kind.value, who.subject] = now
            if who.session:
                self._noted[_SESSIONS, who.session] = now

    def write(self, store: Store) -> None:
        """In one transaction, always in the same order, so that two processes do not wait for each other."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return
        with store.begin() as conn:
            for kind, book in _BOOKS.items():
                book.note_uses(conn, {key[1]: at for key, at in sorted(noted.items()) if key[0] == kind})


class UseKeeper:
    """Writes the uses, and forgets links, sessions and failed sign-ins that are long over; a thread of its own."""

    def __init__(self, store: Store, uses: Uses, clock: Callable[[], datetime]) -> None:
        self._store, self._uses, self._clock = store, uses, clock
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rlvitals-uses", daemon=True)
        self._swept: datetime | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Writes what is left."""
        self._stopped.set()
        self._thread.join()
        self._keep(self._uses.write)

    def _run(self) -> None:
        while not self._stopped.wait(EVERY_S):
            self._keep(self._uses.write)
            self._keep(self._sweep)

    def _keep(self, act: Callable[[Store], None]) -> None:
        try:
            act(self._store)
        except (ServiceError, SQLAlchemyError) as error:
            log.warning("uses of tokens and sessions could not be written: %s", error)

    def _sweep(self, store: Store) -> None:
        now = self._clock()
        if self._swept is None or now - self._swept >= SWEEP_EVERY:
            self._swept = now
            sweep(store, now)


def sweep(store: Store, now: datetime) -> None:
    """Forgets what is long over. Several processes may do it at once."""
    with store.begin() as conn:
        entries.sweep(conn, now)
        sessions.sweep(conn, now)
        refusals.sweep(conn, now, WINDOW)
