"""Where two people must approve: who is one and the same, whose voice counts, what another value does to it."""

from __future__ import annotations

from datetime import datetime

import pytest

from rlvitals.contract.command import CommandKind, CommandState, Policy
from rlvitals.contract.view import CommandView, Voice
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.control.quorum import has_spoken, is_enough, persons
from rlvitals_monitor.errors import Conflict
from rlvitals_monitor.store.audit import audit_page
from rlvitals_monitor.store.engine import Store
from tests.monitor.planted import NOW, a_transition, later, plant

TWO = Limits(two_person_kinds=frozenset({CommandKind.SET_KL_COEF}))


def voice(who: str, *, named: bool = True, at: datetime = NOW) -> Voice:
    return Voice(who=who, named=named, at=at)


@pytest.mark.parametrize(
    ("wanted", "heard", "enough"),
    [
        (1, [], False),
        (1, [voice("ada")], True),
        (1, [voice("link in chat", named=False)], True),
        (2, [voice("ada")], False),
        (2, [voice("ada"), voice("ben")], True),
        (2, [voice("ada"), voice("link in chat", named=False)], False),
        (2, [voice("link in chat", named=False), voice("other link", named=False)], False),
        (2, [voice("link in chat", named=False), voice("ada"), voice("ben")], True),
        (2, [voice("ada"), voice("ADA")], False),
        (2, [voice("ada"), voice(" ada  ")], False),
        (2, [voice("ada"), voice("\uff41\uff44\uff41")], False),
        (2, [voice("ada"), voice("a\u200bda\u2060")], False),
        (2, [voice("ada"), voice("ada/laptop")], False),
        (2, [voice("Ada / phone"), voice("ada/laptop")], False),
        (2, [voice("ada/phone"), voice("ben/phone")], True),
        (2, [voice("/x"), voice("/y")], True),
    ],
)
def test_only_different_named_people_make_two(wanted: int, heard: list[Voice], enough: bool) -> None:
    assert is_enough(wanted, heard) is enough


def test_who_has_spoken_is_known_by_any_spelling_of_the_name() -> None:
    assert has_spoken("Ada", [voice("ada")])
    assert not has_spoken("ben", [voice("ada")])
    assert persons([voice("Ada"), voice("ada"), voice("x", named=False), voice("ben")]) == ("Ada", "ben")


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (CommandKind.STOP, 2),
        (CommandKind.SET_KL_COEF, 2),
        (CommandKind.SET_KNOB, 2),
        (CommandKind.PAUSE, 1),
        (CommandKind.RESUME, 1),
        (CommandKind.CHECKPOINT, 1),
    ],
)
def test_a_project_that_asks_for_two_lets_one_person_pause_and_save(kind: CommandKind, wanted: int) -> None:
    limits = Limits(two_person_projects=frozenset({"demo"}))
    assert limits.persons(kind, "demo") == wanted
    assert limits.persons(kind, "another") == 1


@pytest.fixture
def planted(store: Store) -> Store:
    plant(store, a_transition())
    return store


def propose(store: Store, policy: Policy = Policy.APPROVE) -> CommandView:
    with store.begin() as conn:
        made = mailbox.propose(conn, a_transition(), Policies(default=policy), NOW, TWO)
    assert isinstance(made, CommandView)
    return made


def approve(
    store: Store, command: str, who: str, argument: float | None = None, named: bool = True, after_s: float = 1
) -> CommandView:
    with store.begin() as conn:
        return mailbox.approve(conn, command, who, later(after_s), argument, TWO, named=named)


def spoken(view: CommandView) -> list[str]:
    return [voice.who for voice in view.voices]


def test_the_second_person_releases_what_the_first_one_approved(planted: Store) -> None:
    made = propose(planted)
    assert made.persons == 2
    first = approve(planted, made.id, "ada")
    assert (first.state, spoken(first)) == (CommandState.PROPOSED, ["ada"])
    second = approve(planted, made.id, "ben", after_s=2)
    assert (second.state, second.decided_by, spoken(second)) == (CommandState.PENDING, "ada, ben", ["ada", "ben"])
    with planted.read() as conn:
        lines, _ = audit_page(conn)
    assert [(line.what, line.who) for line in lines[::-1]] == [
        ("proposed", "rule:kl_pull_dominates"),
        ("voice", "ada"),
        ("approved", "ben"),
    ]
    assert lines[1].detail.startswith("1 of 2 people have approved set_kl_coef 0.05")


def test_the_same_person_is_never_the_second(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id, "ada")
    with pytest.raises(Conflict, match="needs another person"):
        approve(planted, made.id, "Ada")


def test_a_voice_without_a_name_counts_for_none_of_two(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id, "a link in chat", named=False)
    still = approve(planted, made.id, "ada", after_s=2)
    assert still.state is CommandState.PROPOSED
    assert approve(planted, made.id, "ben", after_s=3).decided_by == "ada, ben"


def test_another_value_makes_the_earlier_voices_void(planted: Store) -> None:
    made = propose(planted)
    approve(planted, made.id, "ada")
    changed = approve(planted, made.id, "ben", 0.06, after_s=2)
    assert (changed.state, changed.argument, spoken(changed)) == (CommandState.PROPOSED, 0.06, ["ben"])
    assert approve(planted, made.id, "ada", after_s=3).state is CommandState.PENDING


def test_nothing_is_automatic_where_two_people_are_asked(planted: Store) -> None:
    made = propose(planted, Policy.AUTO)
    assert made.state is CommandState.PROPOSED
    assert "two people" in made.reason


def test_who_asks_is_the_first_of_the_two(planted: Store) -> None:
    with planted.begin() as conn:
        asked = mailbox.request(conn, "r1", CommandKind.SET_KL_COEF, 0.05, "ada", "looks wrong", NOW, TWO)
    assert (asked.state, spoken(asked)) == (CommandState.PROPOSED, ["ada"])
    with pytest.raises(Conflict, match="needs another person"):
        approve(planted, asked.id, "ada")
    assert approve(planted, asked.id, "ben").state is CommandState.PENDING
