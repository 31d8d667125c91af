"""Commands between service and trainer: what a run that ended gets, what is handed out, and whose clock counts."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import update

from rlvitals.contract.command import CommandKind, CommandState, Knob, Outcome
from rlvitals.contract.report import ReportBatch, RunInfo
from rlvitals.contract.view import CommandView
from rlvitals_monitor.control import handover, mailbox
from rlvitals_monitor.control.policy import Policies
from rlvitals_monitor.errors import BadRequest, Conflict
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.audit import verify
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import read_run
from rlvitals_monitor.store.tables import runs
from tests.monitor.batches import batch, step
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant, plant_run, plant_transition

STOP, KNOB = CommandKind.STOP, CommandKind.SET_KNOB
TEMPERATURE = Knob(low=0.2, high=2.0, value=1.0, max_change=0.5)


@pytest.fixture
def planted(store: Store) -> Store:
    plant(store, a_transition())
    return store


def ask(
    store: Store, kind: CommandKind = STOP, argument: float | None = None, knob: str = "", after_s: float = 0
) -> CommandView:
    with store.begin() as conn:
        return mailbox.request(conn, "r1", kind, argument, "ada", "", later(after_s), knob=knob)


def hand_out(store: Store, after_s: float = 1) -> list[tuple[str, float | None]]:
    with store.begin() as conn:
        return [(command.id, command.valid_s) for command in handover.pending_for(conn, "r1", later(after_s))]


def end(store: Store, phase: str = "finished") -> None:
    with store.begin() as conn:
        conn.execute(update(runs).where(runs.c.id == "r1").values(phase=phase))


def expire(store: Store, after_s: float) -> int:
    with store.read() as conn:
        found = commands.overdue_runs(conn, later(after_s))
    done = 0
    for run in found:
        with store.begin() as conn:
            done += handover.expire(conn, run, later(after_s))
    return done


def now_is(store: Store, command: str) -> CommandView:
    with store.read() as conn:
        found = commands.find(conn, command)
    assert found is not None
    return found


def answer(store: Store, command: str, state: CommandState) -> bool:
    with store.begin() as conn:
        outcome = Outcome(seq=1, command_id=command, state=state, step=121)
        return handover.record_outcome(conn, "r1", outcome, later(60))


def test_a_command_is_handed_out_with_the_time_that_is_left(planted: Store) -> None:
    made = ask(planted)
    assert hand_out(planted, 600) == [(made.id, 3000.0)]
    assert hand_out(planted, 3599) == [(made.id, 1.0)]
    assert hand_out(planted, 3600) == []


@pytest.mark.parametrize("phase", ["finished", "failed"])
def test_a_run_that_ended_gets_no_command_and_says_why(planted: Store, phase: str) -> None:
    end(planted, phase)
    with pytest.raises(Conflict, match="run over: the run has ended"):
        ask(planted)


def test_a_proposal_for_a_run_that_ended_since_cannot_be_approved(planted: Store) -> None:
    with planted.begin() as conn:
        made = mailbox.propose(conn, a_transition(), Policies(), NOW)
    assert isinstance(made, CommandView)
    end(planted)
    with pytest.raises(Conflict, match="the run has ended"), planted.begin() as conn:
        mailbox.approve(conn, made.id, "ada", later(1))


@pytest.mark.parametrize("delivered", [False, True])
def test_what_waits_when_the_run_ends_is_refused_with_the_reason(planted: Store, delivered: bool) -> None:
    made = ask(planted)
    if delivered:
        hand_out(planted)
    end(planted)
    assert expire(planted, 29) == 0
    assert expire(planted, 31) == 1
    assert expire(planted, 32) == 0
    ended = now_is(planted, made.id)
    assert (ended.state, ended.reason) == (CommandState.REFUSED, handover.RUN_ENDED)


def test_news_from_before_the_end_corrects_the_refusal_and_no_other_does(planted: Store) -> None:
    made = ask(planted)
    end(planted)
    expire(planted, 31)
    assert answer(planted, made.id, CommandState.APPLIED)
    assert (now_is(planted, made.id).state, now_is(planted, made.id).reason) == (CommandState.APPLIED, "")
    assert not answer(planted, made.id, CommandState.REFUSED)


def told(store: Store, attempt: str, **knobs: Knob) -> tuple[str, ...]:
    """A batch of an attempt that can do all and has these knobs; the fields that were refused."""
    able = {kind.value: "" for kind in CommandKind}
    info = RunInfo(id="r1", project="demo", capabilities=able, knobs=knobs)
    with store.begin() as conn:
        stored = store_batch(conn, ReportBatch(run=info, attempt=attempt), NOW)
    return tuple(refusal.field for refusal in stored.refused)


def test_a_knob_is_told_shown_turned_and_never_handed_to_an_attempt_without_it(planted: Store) -> None:
    assert told(planted, "a2", temperature=TEMPERATURE) == ()
    with planted.read() as conn:
        assert read_run(conn, "r1", NOW).knobs == {"temperature": TEMPERATURE}
    made = ask(planted, KNOB, 1.4, "temperature")
    assert made.bounds is not None
    assert (made.knob, made.bounds.low, made.bounds.high) == ("temperature", *map(pytest.approx, (0.5, 1.5)))
    assert [command for command, _ in hand_out(planted)] == [made.id]
    told(planted, "a3")
    assert hand_out(planted) == []


def test_two_knobs_of_one_run_are_open_at_once(planted: Store) -> None:
    told(planted, "a2", temperature=TEMPERATURE, top_p=replace(TEMPERATURE, high=1.0, value=0.9))
    ask(planted, KNOB, 1.4, "temperature")
    assert ask(planted, KNOB, 0.8, "top_p").state is CommandState.PENDING
    with pytest.raises(Conflict, match="already open"):
        ask(planted, KNOB, 1.2, "temperature")
    with pytest.raises(Conflict, match="no knob 'top_k'"):
        ask(planted, KNOB, 1.2, "top_k")
    answer(planted, _open(planted, "temperature"), CommandState.REFUSED)
    with pytest.raises(BadRequest, match="too large a change"):
        ask(planted, KNOB, 1.6, "temperature")


def _open(store: Store, knob: str) -> str:
    with store.read() as conn:
        items, _ = commands.page(conn, run="r1")
    return next(item.id for item in items if item.knob == knob)


def test_a_knob_that_is_none_is_refused_and_the_others_kept(planted: Store) -> None:
    bad = {"no name!": TEMPERATURE, "nan": replace(TEMPERATURE, low=float("nan")), "good": TEMPERATURE}
    assert told(planted, "a2", **bad) == ("run.knobs.no name!", "run.knobs.nan")
    with planted.read() as conn:
        assert set(read_run(conn, "r1", NOW).knobs) == {"good"}


def test_many_who_change_many_runs_at_once_wait_for_each_other_in_no_circle(store: Store) -> None:
    names = [f"r{number}" for number in range(4)]
    with store.begin() as conn:
        for name in names:
            plant_run(conn, name)
            plant_transition(conn, a_transition(an_alert(run=name, id=f"a-{name}"), id=f"x-{name}"))
    gate = threading.Barrier(4)

    def work(order: list[str]) -> None:
        gate.wait(10)
        for name in order:
            with suppress(Conflict), store.begin() as conn:
                mailbox.request(conn, name, CommandKind.CHECKPOINT, None, "ada", "", NOW)
            with store.begin() as conn:
                handed = handover.pending_for(conn, name, later(1))
            for command in handed:
                with store.begin() as conn:
                    done = Outcome(seq=1, command_id=command.id, state=CommandState.APPLIED)
                    handover.record_outcome(conn, name, done, later(2))

    with ThreadPoolExecutor(4) as pool:
        for ended in [pool.submit(work, names[turn:] + names[:turn]) for turn in range(4)]:
            ended.result(30)
    with store.read() as conn:
        assert verify(conn).fault == ""


def plant_attempt(store: Store, attempt: str, after_s: float) -> None:
    """An attempt of the run that is heard of then."""
    with store.begin() as conn:
        store_batch(conn, batch(step(1, 1, {}), run="r1", attempt=attempt), later(after_s))


def hand_to(
    store: Store, attempt: str, after_s: float, heir_of: tuple[str, ...] = (), *, newest: bool = True
) -> list[str]:
    with store.begin() as conn:
        given = handover.pending_for(conn, "r1", later(after_s), attempt, heir_of=heir_of, newest=newest)
        return [command.id for command in given]


def test_of_two_trainers_that_call_themselves_the_same_run_one_is_given_a_command(planted: Store) -> None:
    plant_attempt(planted, "first", 1)
    plant_attempt(planted, "second", 1)
    asked = ask(planted, CommandKind.CHECKPOINT)
    assert hand_to(planted, "first", 2) == [asked.id]
    assert hand_to(planted, "second", 3) == []
    assert hand_to(planted, "first", 4) == [asked.id], "again: a receipt may get lost"


@pytest.mark.parametrize("after_s", [-7200, 31, 3500])
def test_however_silent_an_attempt_and_however_wrong_a_clock_no_other_is_given_what_it_has(
    planted: Store, after_s: float
) -> None:
    plant_attempt(planted, "silent", 1)
    plant_attempt(planted, "twin", 1)
    asked = ask(planted, CommandKind.CHECKPOINT)
    assert hand_to(planted, "silent", 2) == [asked.id]
    assert hand_to(planted, "twin", after_s) == []
    assert hand_to(planted, "silent", 4, newest=False) == [asked.id], "it is still that one's"


def test_an_older_attempt_is_given_nothing_new(planted: Store) -> None:
    ask(planted, CommandKind.CHECKPOINT)
    assert hand_to(planted, "older", 2, newest=False) == []


def test_a_trainer_that_was_started_again_beside_its_journal_is_given_what_the_dead_one_had_at_once(
    planted: Store,
) -> None:
    asked = ask(planted, CommandKind.CHECKPOINT)
    assert hand_to(planted, "dead", 2) == [asked.id]
    assert hand_to(planted, "elsewhere", 3, ("other",)) == []
    assert hand_to(planted, "resumed", 3, ("other", "dead")) == [asked.id]
    assert hand_to(planted, "dead", 4) == [], "what it sends late changes nothing"
    assert hand_to(planted, "third", 5, ("dead",)) == [], "which never had the second one's"


def test_what_was_lost_with_an_attempt_is_given_up_so_that_it_can_be_asked_for_again(planted: Store) -> None:
    plant_attempt(planted, "dead", 1)
    asked = ask(planted, CommandKind.CHECKPOINT)
    hand_to(planted, "dead", 2)
    assert expire(planted, 62) == 0, "nobody else is there"
    plant_attempt(planted, "elsewhere", 30)
    assert expire(planted, 60) == 0
    assert expire(planted, 62) == 1
    ended = now_is(planted, asked.id)
    assert (ended.state, ended.reason) == (CommandState.EXPIRED, handover.NOT_KNOWN)
    again = ask(planted, CommandKind.CHECKPOINT, after_s=63)
    assert hand_to(planted, "elsewhere", 64) == [again.id]
    assert answer(planted, asked.id, CommandState.APPLIED), "its journal came after all"
    assert now_is(planted, asked.id).state is CommandState.APPLIED


def test_what_an_attempt_has_that_is_heard_of_is_not_given_up(planted: Store) -> None:
    plant_attempt(planted, "first", 1)
    ask(planted, CommandKind.CHECKPOINT)
    hand_to(planted, "first", 2)
    plant_attempt(planted, "second", 30)
    plant_attempt(planted, "first", 100)
    assert expire(planted, 159) == 0
