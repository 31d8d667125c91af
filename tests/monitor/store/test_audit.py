"""The audit's chain: what is changed, put in, taken out or cut off afterwards shows."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import delete, insert, text, update

from rlvitals_monitor.store.audit import Filter, append_audit, audit_lines, audit_page, verify
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import audit
from tests.monitor.planted import later


def write(store: Store, number: int, **given: Any) -> None:
    told: dict[str, Any] = {"who": "ada", "what": "approved", "detail": f"line {number}", "run": "r1", **given}
    with store.begin() as conn:
        append_audit(conn, at=later(number), **told)


@pytest.fixture
def written(store: Store) -> Store:
    for number in range(5):
        write(store, number)
    return store


def fault(store: Store, head: str = "") -> tuple[int | None, str]:
    with store.read() as conn:
        found = verify(conn, head)
    return found.number, found.fault


def head(store: Store) -> str:
    with store.read() as conn:
        return verify(conn).head


def test_an_untouched_audit_holds(written: Store) -> None:
    with written.read() as conn:
        found = verify(conn)
    assert (found.lines, found.unchained, found.fault) == (5, 0, "")
    with written.read() as conn:
        assert found.head == audit_page(conn)[0][0].digest


def test_an_empty_audit_holds(store: Store) -> None:
    assert fault(store) == (None, "")


@pytest.mark.parametrize("column", ["who", "what", "detail", "run", "command", "at", "digest"])
def test_a_line_that_was_changed_shows(written: Store, column: str) -> None:
    with written.begin() as conn:
        value: Any = 1 if column == "at" else "f" * 32
        conn.execute(update(audit).where(audit.c.number == 3).values(**{column: value}))
    assert fault(written) == (3, "the line, or one before it, was changed, put in or taken out")


def test_a_line_that_was_taken_out_shows_at_the_next_one(written: Store) -> None:
    with written.begin() as conn:
        conn.execute(delete(audit).where(audit.c.number == 1))
    assert fault(written)[0] == 2


def test_a_line_that_was_put_in_shows(written: Store) -> None:
    with written.begin() as conn:
        row = {"at": 1, "run": "", "command": "", "who": "mallory", "what": "approved", "detail": ""}
        conn.execute(insert(audit).values(number=99, **row, digest=""))
    assert fault(written)[0] == 99


def test_lines_that_were_cut_off_show_to_who_noted_the_last_digest(written: Store) -> None:
    noted = head(written)
    with written.begin() as conn:
        conn.execute(delete(audit).where(audit.c.number >= 4))
    assert fault(written) == (None, "")
    assert "cut off" in fault(written, noted)[1]


def test_a_digest_that_was_noted_earlier_is_still_in_a_longer_chain(written: Store) -> None:
    noted = head(written)
    write(written, 9)
    assert fault(written, noted) == (None, "")


def test_lines_from_before_the_chain_are_counted_and_the_chain_begins_behind_them(store: Store) -> None:
    with store.begin() as conn:
        row = {"at": 1, "run": "", "command": "", "who": "ada", "what": "approved", "detail": ""}
        conn.execute(insert(audit).values(**row, digest=""))
    write(store, 1)
    with store.read() as conn:
        found = verify(conn)
    assert (found.lines, found.unchained, found.fault) == (2, 1, "")


def test_writers_at_once_make_one_chain(store: Store) -> None:
    gate = threading.Barrier(4)

    def many(name: str) -> None:
        gate.wait(10)
        for number in range(5):
            write(store, number, who=name)

    writers = [threading.Thread(target=many, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    with store.read() as conn:
        found = verify(conn)
    assert (found.lines, found.fault) == (20, "")


def test_words_beyond_ascii_and_control_characters_are_chained_as_they_are(store: Store) -> None:
    for number, detail in enumerate(["中文 \u202e", "\x1b[31m", "line\nbreak", "\ud800", ""]):
        write(store, number, detail=detail)
    assert fault(store) == (None, "")


def test_lines_are_found_by_run_who_and_what_in_both_orders(written: Store) -> None:
    write(written, 6, run="r2", who="ben", what="denied")
    with written.read() as conn:
        assert [line.who for line in audit_page(conn, Filter(run="r2"))[0]] == ["ben"]
        assert [line.what for line in audit_lines(conn, Filter(who="ben"))] == ["denied"]
        assert len(audit_lines(conn, Filter(what="approved"), after=2)) == 3


def test_the_whole_table_is_read_in_pieces(written: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlvitals_monitor.store.audit.ROWS_A_READ", 2)
    assert fault(written) == (None, "")
    with written.read() as conn:
        assert conn.scalar(text("select count(*) from audit")) == 5
