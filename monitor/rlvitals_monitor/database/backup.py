"""A backup is a SQLite file with all that a store has, whatever database it is; any service can restore it."""

from __future__ import annotations

import os
import shutil
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DatabaseError

from rlvitals_monitor.store import snapshot, transfer
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.soundness import check
from rlvitals_monitor.store.tables import points, runs


class BackupError(Exception):
    """It cannot be done, and says why; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a store has."""

    runs: int
    points: int
    size: int = 0


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def back_up(store: Store, file: Path) -> Summary:
    """Writes ``file``, which must not be there yet, while the service goes on; checks it before it gets its name.

    Raises `BackupError`.
    """
    if file.exists():
        raise BackupError(f"{file} is there already")
    if not store.is_current():
        raise BackupError("the schema is not up to date: run `rlvitals db migrate`")
    part = file.with_name(f"{file.name}.partial")
    _remove(part)
    try:
        _make_private(part)
        if store.is_sqlite:
            snapshot.vacuum_into(store, part)
        else:
            _copy_into(store, part)
        found = _checked(part)
        _sync(part)
        os.replace(part, file)
    finally:
        _remove(part)
    return Summary(runs=found.runs, points=found.points, size=file.stat().st_size)


def restore(file: Path, store: Store, *, replace: bool = False) -> Summary:
    """Puts a backup in the place of an empty store; ``replace``: of any. Raises `BackupError`.

    The backup may be of an older version: it is brought up to date first, in a copy. The store gets a new epoch,
    so that clients send again what they still keep. Nobody is signed in, and no link that works once works: what
    was ended or used since the backup would be good again.
    """
    if not file.is_file():
        raise BackupError(f"there is no file {file}")
    if not _is_sqlite(file):
        raise BackupError(f"{file} is no backup of RL Vitals")
    if snapshot.is_in_use(store):
        raise BackupError("another program has the database open: stop the service first")
    store.migrate()
    with store.read() as connection:
        if not (replace or transfer.is_empty(connection)):
            raise BackupError("the store is not empty: with --replace all that is in it is lost")
    copy = file.with_name(f"{file.name}.restoring")
    _remove(copy)
    try:
        _make_private(copy)
        shutil.copyfile(file, copy)
        with closing(Store(url_of(copy))) as source:
            source.migrate()
            _refuse_unsound(source)
            with source.read() as read, store.begin() as write:
                transfer.copy_all(read, write)
                snapshot.new_epoch(write)
                snapshot.forget_who_is_in(write)
                return _count(write)
    except DatabaseError as error:
        raise BackupError(f"{file} is damaged: {error.orig}") from error
    except transfer.Incomplete as error:
        raise BackupError(str(error)) from error
    finally:
        _remove(copy)


def move(source: Store, target: Store) -> tuple[transfer.Content, ...]:
    """Copies all into an empty store and proves that it arrived. The epoch stays: nothing was lost, and clients go
    on where they are. Raises `BackupError`.
    """
    if snapshot.is_in_use(source):
        raise BackupError("another program has the database open: stop the service first")
    source.migrate()
    target.migrate()
    with target.read() as connection:
        if not transfer.is_empty(connection):
            raise BackupError("the other store is not empty")
    with snapshot.frozen(source) as read, target.begin() as write:
        return transfer.copy_all(read, write)


def _copy_into(store: Store, file: Path) -> None:
    with closing(Store(url_of(file))) as target:
        target.migrate()
        with snapshot.frozen(store) as read, target.begin() as write:
            transfer.copy_all(read, write)


def _checked(file: Path) -> Summary:
    with closing(Store(url_of(file))) as store:
        _refuse_unsound(store)
        with store.read() as connection:
            return _count(connection)


def _refuse_unsound(store: Store) -> None:
    with store.read() as connection:
        faults = [found for found in check(connection) if found.fault]
    if faults:
        raise BackupError("; ".join(f"it is not so that {found.question}: {found.fault}" for found in faults))


def _count(connection: Connection) -> Summary:
    """Runs that were not deleted, and raw points."""
    there = select(func.count()).select_from(runs).where(runs.c.deleted_at.is_(None))
    raw = select(func.count()).select_from(points)
    return Summary(runs=connection.scalar(there) or 0, points=connection.scalar(raw) or 0)


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(16) == b"SQLite format 3\0"


def _make_private(file: Path) -> None:
    """A new file that its owner alone may read: it will have the digests of passwords and tokens."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _sync(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


def _remove(file: Path) -> None:
    for name in (file, *(file.with_name(f"{file.name}{end}") for end in ("-wal", "-shm", "-journal"))):
        with suppress(FileNotFoundError):
            name.unlink()
