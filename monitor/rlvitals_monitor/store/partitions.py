"""The large tables as one, or each in parts by hash: changed while reports come in. PostgreSQL alone.

A table gets an empty twin of the wanted form, and a trigger that takes over whatever is written from then on.
What was there before is copied in pieces; each holds its run's lock, as a report does, and its rows' against what
removes them. Then both are proven equal in one look, and the twin takes the table's name. Broken off, it goes on
where it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Table, delete, select, text
from sqlalchemy.dialects import postgresql

from rlvitals_monitor.store.tables import (
    attempts,
    extremes,
    histograms,
    meta,
    points,
    rollups,
    runs,
    series,
    steps,
    texts,
)

LARGE: tuple[Table, ...] = (points, rollups, extremes, histograms, steps, texts)
PARTS_MAX = 256
_LOWEST = -(2**63)

Key = tuple[int, ...]
"""Of a row, behind its owner; empty for the beginning."""


class NotTheSame(Exception):
    """A table and its twin differ; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is to be copied next: the rows of one attempt, all of the same run."""

    attempt: int
    run: str


def owner_of(table: Table) -> str:
    """The column by whose hash a row finds its part, and that every question about it names."""
    return "series" if "series" in table.c else "attempt"


def count_parts(connection: Connection, table: Table) -> int:
    """0 for a table that is one."""
    kind = connection.scalar(
        text("SELECT relkind FROM pg_class WHERE oid = to_regclass(:name)"), {"name": table.name}
    )
    if kind not in ("p", b"p"):
        return 0
    query = text("SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass(:name)")
    return int(connection.scalar(query, {"name": table.name}) or 0)


def begin(connection: Connection, table: Table, parts: int) -> None:
    """Makes the twin and the trigger; nothing where they are there already in this form, anew where in another.

    What writes to the table just now is waited for.
    """
    twin = _twin(table)
    if _is_there(connection, twin):
        if connection.scalar(select(meta.c.value).where(meta.c.key == _form_key(table))) == str(parts):
            return
        abandon(connection, table)
    _lock(connection, table, "SHARE ROW EXCLUSIVE")
    _run(connection, _definition(table, parts))
    _run(connection, _mirror(table))
    postgres_insert = postgresql.insert(meta)
    for key, value in ((_form_key(table), str(parts)), (_done_key(table), "0")):
        stated = postgres_insert.values(key=key, value=value)
        connection.execute(stated.on_conflict_do_update(index_elements=["key"], set_={"value": value}))


def abandon(connection: Connection, table: Table) -> None:
    """Takes twin and trigger away, if they are there; the table is as it was."""
    if not _is_there(connection, _twin(table)):
        return
    _lock(connection, table, "ACCESS EXCLUSIVE")
    _run(connection, (f"DROP TABLE {_twin(table)}", f"DROP FUNCTION {_function(table)}() CASCADE"))
    connection.execute(delete(meta).where(meta.c.key.in_((_form_key(table), _done_key(table)))))


def pieces(connection: Connection, table: Table, limit: int) -> Sequence[Piece]:
    """The next attempts whose rows are to be copied."""
    done = int(connection.scalar(select(meta.c.value).where(meta.c.key == _done_key(table))) or 0)
    query = select(attempts.c.number, attempts.c.run).where(attempts.c.number > done)
    rows = connection.execute(query.order_by(attempts.c.number).limit(limit))
    return [Piece(attempt=row.number, run=row.run) for row in rows]


def owners(connection: Connection, table: Table, piece: Piece) -> list[int]:
    """The values of `owner_of` that an attempt's rows have."""
    if owner_of(table) == "attempt":
        return [piece.attempt]
    query = select(series.c.number).where(series.c.attempt == piece.attempt).order_by(series.c.number)
    return list(connection.scalars(query))


def lock_run(connection: Connection, piece: Piece) -> None:
    connection.execute(select(runs.c.id).where(runs.c.id == piece.run).with_for_update())


def copy(connection: Connection, table: Table, owner: int, after: Key, limit: int) -> tuple[int, Key]:
    """Copies up to ``limit`` rows of one owner behind ``after``; how many, and where it came to.

    The caller holds the run's lock.
    """
    rest = _rest(table)
    names, marks = ", ".join(rest), ", ".join(f":k{place}" for place in range(len(rest)))
    backwards = ", ".join(f"{name} DESC" for name in rest)
    statement = f"""
        WITH piece AS (SELECT * FROM {table.name} WHERE {owner_of(table)} = :owner AND ({names}) > ({marks})
                       ORDER BY {names} LIMIT :most FOR SHARE),
             copied AS (INSERT INTO {_twin(table)} SELECT * FROM piece ON CONFLICT DO NOTHING)
        SELECT count(*) OVER (), {names} FROM piece ORDER BY {backwards} LIMIT 1"""
    keys = {f"k{place}": value for place, value in enumerate(after or (_LOWEST,) * len(rest))}
    last = connection.execute(text(statement), {"owner": owner, "most": limit, **keys}).one_or_none()
    return (0, after) if last is None else (int(last[0]), tuple(last[1:]))


def mark_done(connection: Connection, table: Table, piece: Piece) -> None:
    connection.execute(meta.update().where(meta.c.key == _done_key(table)).values(value=str(piece.attempt)))


def prove(connection: Connection, table: Table) -> int:
    """Reads every row of both, in whatever order; how many there are. Raises `NotTheSame`.

    The connection must see one state throughout.
    """
    content = "SELECT count(*), coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) FROM {} t"
    mine = connection.execute(text(content.format(table.name))).one()
    its = connection.execute(text(content.format(_twin(table)))).one()
    if tuple(mine) != tuple(its):
        raise NotTheSame(f"table {table.name}: {mine[0]} rows are there and {its[0]} were copied, or they differ")
    return int(mine[0])


def swap(connection: Connection, table: Table) -> None:
    """The twin becomes the table. One short transaction that waits for what reads or writes the table just now."""
    name, twin = table.name, _twin(table)
    number = table.autoincrement_column
    sequence = None
    if number is not None:
        owned = text("SELECT pg_get_serial_sequence(:table, :column)")
        sequence = connection.scalar(owned, {"table": name, "column": number.name})
    kept = (
        [] if sequence is None or number is None else [f"ALTER SEQUENCE {sequence} OWNED BY {twin}.{number.name}"]
    )
    _lock(connection, table, "ACCESS EXCLUSIVE")
    _run(
        connection,
        [
            *kept,
            f"DROP TABLE {name}",
            f"DROP FUNCTION {_function(table)}()",
            f"ALTER TABLE {twin} RENAME TO {name}",
            f"ALTER TABLE {name} RENAME CONSTRAINT pk_{twin} TO pk_{name}",
            *(f"ALTER INDEX {index.name}_twin RENAME TO {index.name}" for index in table.indexes),
        ],
    )
    connection.execute(delete(meta).where(meta.c.key.in_((_form_key(table), _done_key(table)))))


def analyze(connection: Connection, table: Table) -> None:
    """Nobody else does so for a table in parts."""
    _run(connection, [f"ANALYZE {table.name}"])


def wait_for_locks(connection: Connection, at_most_ms: int) -> None:
    """To the end of the transaction."""
    _run(connection, [f"SET LOCAL lock_timeout = {at_most_ms}"])


def _lock(connection: Connection, table: Table, mode: str) -> None:
    """With those that it refers to, all at once: who then waits for us began to after us, and so outlasts us."""
    referred = sorted({key.column.table.name for key in table.foreign_keys})
    _run(connection, [f"LOCK TABLE {', '.join([*referred, table.name])} IN {mode} MODE"])


def _definition(table: Table, parts: int) -> Iterator[str]:
    name, twin, owner = table.name, _twin(table), owner_of(table)
    keys = [column.name for column in table.primary_key.columns]
    if parts and owner not in keys:
        keys.append(owner)
    by_hash = f" PARTITION BY HASH ({owner})" if parts else ""
    yield f"CREATE TABLE {twin} (LIKE {name} INCLUDING DEFAULTS){by_hash}"
    for part in range(parts):
        values = f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {part})"
        yield f"CREATE TABLE {name}_{part}_of_{parts} PARTITION OF {twin} {values}"
    yield f"ALTER TABLE {twin} ADD CONSTRAINT pk_{twin} PRIMARY KEY ({', '.join(keys)})"
    for key in table.foreign_keys:
        refers = f"FOREIGN KEY ({key.parent.name}) REFERENCES {key.column.table.name} ({key.column.name})"
        yield f"ALTER TABLE {twin} ADD CONSTRAINT {key.name} {refers}"
    for index in table.indexes:
        yield f"CREATE INDEX {index.name}_twin ON {twin} ({', '.join(column.name for column in index.columns)})"


def _mirror(table: Table) -> Iterator[str]:
    """What is written to the table is written to the twin, in the same transaction."""
    name, twin, function = table.name, _twin(table), _function(table)
    keys = [column.name for column in table.primary_key.columns]
    same = {row: " AND ".join(f"{key} = {row}.{key}" for key in keys) for row in ("OLD", "NEW")}
    yield f"""CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'TRUNCATE' THEN TRUNCATE {twin};
        ELSE
            IF TG_OP <> 'INSERT' THEN DELETE FROM {twin} WHERE {same["OLD"]}; END IF;
            IF TG_OP <> 'DELETE' THEN
                DELETE FROM {twin} WHERE {same["NEW"]};
                INSERT INTO {twin} SELECT NEW.*;
            END IF;
        END IF;
        RETURN NULL;
    END $$"""
    called = f"EXECUTE FUNCTION {function}()"
    yield f"CREATE TRIGGER {twin} AFTER INSERT OR UPDATE OR DELETE ON {name} FOR EACH ROW {called}"
    yield f"CREATE TRIGGER {twin}_emptied AFTER TRUNCATE ON {name} FOR EACH STATEMENT {called}"


def _rest(table: Table) -> list[str]:
    """The key's columns behind the owner."""
    return [column.name for column in table.primary_key.columns if column.name != owner_of(table)]


def _twin(table: Table) -> str:
    return f"{table.name}_twin"


def _function(table: Table) -> str:
    return f"rlvitals_mirror_{table.name}"


def _form_key(table: Table) -> str:
    return f"twin:{table.name}:parts"


def _done_key(table: Table) -> str:
    return f"twin:{table.name}:done"


def _is_there(connection: Connection, name: str) -> bool:
    return connection.scalar(text("SELECT to_regclass(:name)"), {"name": name}) is not None


def _run(connection: Connection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.exec_driver_sql(statement)
