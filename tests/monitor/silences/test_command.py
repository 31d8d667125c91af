"""``rlvitals silence``, on both databases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rlvitals_monitor.silences.command import parse, run
from rlvitals_monitor.store import audit
from rlvitals_monitor.store.engine import Store
from tests.monitor.planted import NOW, later

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def silence(store: Store, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command; answers its exit code and what it wrote."""

    def told(*argv: str, seconds: float = 0.0) -> tuple[int, str, str]:
        code = run(store, parse(argv), later(seconds))
        said = capsys.readouterr()
        return code, said.out, said.err

    return told


def test_a_silence_is_asked_for_listed_and_ended_by_name(silence: Run, store: Store) -> None:
    code, made, _ = silence("add", "run=r1", "rule=kl_*", "--for", "2h", "--by", "ann", "--why", "new data")
    assert code == 0
    key = made.partition(" ")[0]
    assert "active  silence  2026-05-04 12:00 to 2026-05-04 14:00 UTC" in made
    assert "run=r1 rule=kl_*  by ann: new data" in made
    assert silence("list")[1] == made
    assert silence("end", key, "--by", "bob", seconds=60)[0] == 0
    assert silence("list", seconds=60)[1:] == ("", "no silence is in force or planned\n")
    assert "ended by bob" in silence("list", "--all", seconds=60)[1]
    code, _, said = silence("end", key, seconds=61)
    assert (code, "by bob" in said) == (2, True)
    with store.read() as conn:
        lines, _ = audit.audit_page(conn)
    assert [(line.who, line.what) for line in lines] == [("bob", "silence ended"), ("ann", "silence asked for")]


def test_maintenance_comes_again_or_is_planned_ahead(silence: Run) -> None:
    weekly = silence(
        "add", "project=*", "--maintenance", "--every", "0 22 * * 5", "--zone", "Europe/Berlin", "--for", "4h"
    )
    assert "resting  maintenance" in weekly[1]
    assert "every 0 22 * * 5 Europe/Berlin for 14400 s" in weekly[1]
    once = silence("add", "project=*", "--from", "2026-05-05T08:00+02:00", "--until", "2026-05-05T10:00:00Z")
    assert "pending  silence  2026-05-05 06:00 to 2026-05-05 10:00 UTC" in once[1]


def test_what_cannot_be_read_is_told_and_nothing_is_kept(silence: Run) -> None:
    for argv, said in (
        (["rule=a"], "expected --for or --until"),
        (["rule=a", "--for", "soon"], "--for: expected a length as 30m, 2h or 1d"),
        (["rule=a", "--for", "nan"], "--for: expected"),
        (["rule=a", "--for", "0s"], "above 0"),
        (["rule=a", "--for", "9999d"], "at most"),
        (["everything", "--for", "2h"], "expected FIELD=PATTERN"),
        (["rule=a", "--until", "tomorrow"], "--until: expected a time"),
        (["rule=a", "--every", "0 22 * *", "--for", "2h"], "cron: expected five fields"),
        (["rule=a", "--every", "0 22 * * 5"], "--every needs --for"),
    ):
        code, out, err = silence("add", *argv)
        assert (code, out) == (2, ""), argv
        assert said in err, argv
    assert silence("list", "--all") == (0, "", "there is no silence\n")
    assert silence("end", "nothing")[0] == 2


def test_what_people_typed_does_not_steer_the_terminal(silence: Run) -> None:
    made = silence("add", "rule=\x1b[31ma", "--for", "1h", "--why", "\x1b]0;x\x07", "--by", "a\u202eb")[1]
    assert not set(made) & {"\x1b", "\x07", "\u202e"}
    assert NOW.strftime("%Y-%m-%d %H:%M") in made
