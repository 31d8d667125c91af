"""``rlvitals db``, ``rlvitals backup`` and ``rlvitals restore``."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from rlvitals.screen import printable
from rlvitals_monitor.control.local_store import command_line_user
from rlvitals_monitor.database import backup as kept
from rlvitals_monitor.database.backup import BackupError
from rlvitals_monitor.database.distribution import distribute
from rlvitals_monitor.database.partition import PARTS, partition
from rlvitals_monitor.faults import plainly
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import snapshot, soundness
from rlvitals_monitor.store.audit import append_audit
from rlvitals_monitor.store.engine import Store

DB_HELP = """migrate: bring the schema up to date
check: read the whole store and say whether it holds together
move: copy all into another, empty database (SQLite to PostgreSQL or back), and prove that it arrived
vacuum: give the space of what was removed back to the disk
partition: the large tables in parts by hash, on PostgreSQL, while the service goes on
distribute: the large tables over the nodes of a Citus cluster"""


@plainly
def db(argv: list[str]) -> int:
    """The database: bring its schema up to date, check it, move it, give its free space back."""
    parser = argparse.ArgumentParser(
        prog="rlvitals db",
        description=db.__doc__,
        epilog=DB_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("migrate", "check", "vacuum"):
        actions.add_parser(name)
    moving = actions.add_parser("move")
    moving.add_argument("url", help="where to: postgresql+psycopg://… or sqlite:///…")
    parting = actions.add_parser("partition")
    parting.add_argument("--parts", type=int, default=PARTS, help="how many; 0 for one table again (%(default)s)")
    actions.add_parser("distribute")
    _name_folder(*actions.choices.values())
    told = parser.parse_args(argv)
    with closing(_store(told.data)) as store:
        if told.action == "migrate":
            store.migrate()
            return _say("the schema is up to date")
        if not store.is_there:
            return _nothing_there("db", store)
        if told.action == "check":
            return _check(store)
        if told.action == "vacuum":
            before, after = snapshot.vacuum(store)
            return _say(f"{_size(before)} before, {_size(after)} now")
        if told.action == "partition":
            return _partition(store, told.parts)
        if told.action == "distribute":
            return _distribute(store)
        return _move(store, told.url)


@plainly
def backup(argv: list[str]) -> int:
    """Write all that the service knows into one file, while it goes on."""
    parser = argparse.ArgumentParser(prog="rlvitals backup", description=backup.__doc__)
    parser.add_argument(
        "file", type=Path, help="must not be there yet; it is a SQLite database, whatever yours is"
    )
    _name_folder(parser)
    told = parser.parse_args(argv)
    file: Path = told.file
    with closing(_store(told.data)) as store:
        if not store.is_there:
            return _nothing_there("backup", store)
        try:
            found = kept.back_up(store, file)
        except BackupError as error:
            return _fail("backup", error)
        _audit(store, "backup made", str(file))
    return _say(f"{file}: {found.runs} runs, {found.points} points, {_size(found.size)}, checked")


@plainly
def restore(argv: list[str]) -> int:
    """Put a backup in the place of what the service knows; stop the service first."""
    parser = argparse.ArgumentParser(prog="rlvitals restore", description=restore.__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--replace", action="store_true", help="also over a store that is not empty: that is lost")
    _name_folder(parser)
    told = parser.parse_args(argv)
    with closing(_store(told.data)) as store:
        try:
            found = kept.restore(told.file, store, replace=told.replace)
        except BackupError as error:
            return _fail("restore", error)
        _audit(store, "restored from a backup", str(told.file))
    _say(f"{found.runs} runs and {found.points} points are back")
    return _say("trainers send again by themselves what they still keep")


def _check(store: Store) -> int:
    store.refuse_newer()
    if not store.is_current():
        _say("the schema is not up to date: run `rlvitals db migrate`")
        return 1
    faults = 0
    with store.read() as connection:
        for found in soundness.check(connection):
            faults += bool(found.fault)
            _say(
                f"FAULT  {found.question}: {printable(found.fault)}" if found.fault else f"ok     {found.question}"
            )
    _say("the schema is up to date, and all is well" if not faults else f"{faults} faults")
    return 1 if faults else 0


def _move(store: Store, url: str) -> int:
    with closing(Store(url)) as target:
        try:
            contents = kept.move(store, target)
        except BackupError as error:
            return _fail("db move", error)
        _audit(target, "moved from another database", f"{sum(one.rows for one in contents)} rows")
    for one in contents:
        _say(f"{one.table:16} {one.rows:>12} rows  sha256 {one.digest[:16]}")
    return _say("all of it is there. Start the service with RLVITALS_DATABASE_URL set to it")


def _partition(store: Store, parts: int) -> int:
    form = f"in {parts} parts" if parts else "one table"
    try:
        for one in partition(store, parts):
            _say(
                f"{one.table:12} {one.rows:>12} rows, {form}"
                if one.changed
                else f"{one.table:12} is {form} already"
            )
    except BackupError as error:
        return _fail("db partition", error)
    _audit(store, "tables partitioned", form)
    return _say("all of it is there")


def _distribute(store: Store) -> int:
    try:
        done = distribute(store)
    except BackupError as error:
        return _fail("db distribute", error)
    _audit(store, "tables distributed", ", ".join(done))
    return _say(f"distributed by series: {', '.join(done)}")


def _audit(store: Store, what: str, detail: str) -> None:
    with store.begin() as connection:
        now = datetime.now(timezone.utc)
        append_audit(connection, at=now, who=command_line_user(), what=what, detail=detail)


def _name_folder(*parsers: argparse.ArgumentParser) -> None:
    for parser in parsers:
        parser.add_argument(
            "--data",
            type=Path,
            help="the service's folder, as `rlvitals serve --data` (default: ~/.rlvitals/data)",
        )


def _store(data: Path | None) -> Store:
    settings = Settings() if data is None else Settings(data=data)
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Store(settings.store_url)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _say(line: str) -> int:
    sys.stdout.write(f"{line}\n")
    return 0


def _nothing_there(command: str, store: Store) -> int:
    where = store.engine.url.database
    return _fail(command, BackupError(f"there is no store at {where}: name the service's folder by --data"))


def _fail(command: str, error: BackupError) -> int:
    sys.stderr.write(f"rlvitals {command}: {printable(str(error))}\n")
    return 1
