"""A client that is connected and sees nothing is told in words; one that starts slowly is left alone."""

from __future__ import annotations

import itertools
import math
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.hooks import HookState, HookTableView, read_table
from rlvitals.contract.report import Event, EventKind, Phase
from rlvitals.contract.view import Light, RunState
from rlvitals_monitor.store import handshake, pulse
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.pulse import FIRST_STEP_ELSE, FIRST_STEP_WITHIN, SILENT_TIMES, Signs
from rlvitals_monitor.store.run_list import list_runs
from rlvitals_monitor.store.runs import read_hooks, read_run
from tests.monitor.batches import NOW, NOW_S, after, batch, counting, heartbeat, step


def row(hook: str, state: str, **other: Any) -> dict[str, Any]:
    return {
        "hook": hook,
        "target": f"Trainer.{hook}",
        "gives": f"what {hook} gives",
        "state": state,
        "why": "",
        "seen": 7 if state == "seen" else 0,
        "optional": False,
    } | other


def table(*rows: Any, **other: Any) -> HookTableView:
    payload = {"framework": "verl", "version": "0.9.1", "steps": 0, "hooks": list(rows)} | other
    return read_table(payload, attempt="a1", writer="main", at=NOW)


def signs(minutes: float, *rows: Any, **other: Any) -> Signs:
    """A trainer that began so long ago, was heard just now, and sent no step."""
    told: dict[str, Any] = {"phase": "starting", "seen_at": NOW, "progress_at": None, "step_s": None} | other
    hooks = handshake.read([table(*rows)] if rows else [])
    return Signs(began_at=NOW - timedelta(minutes=minutes), hooks=hooks, **told)


UNCALLED = row("batch", "patched", gives="text, lengths and rewards")


@pytest.mark.parametrize(
    ("phase", "minutes"),
    [
        ("starting", 59),
        ("rollout", 59),
        ("eval", 99),
        ("checkpoint", 59),
        ("update", 9),
        ("a phase of its own", 9),
    ],
)
def test_a_long_start_a_first_rollout_and_an_evaluation_before_training_are_no_silence(
    phase: str, minutes: float
) -> None:
    felt = pulse.take(signs(minutes, UNCALLED, phase=phase), NOW)
    assert (felt.state, felt.light, felt.reason) == (RunState.CREATED, Light.GREY, "waiting for the first step")


@pytest.mark.parametrize(
    ("phase", "minutes"), [("starting", 61), ("rollout", 61), ("eval", 101), ("checkpoint", 61), ("update", 12)]
)
def test_a_connected_client_without_a_step_turns_amber_and_says_which_hook_is_blind(
    phase: str, minutes: int
) -> None:
    felt = pulse.take(signs(minutes, UNCALLED, phase=phase), NOW)
    assert (felt.state, felt.light) == (RunState.LATE, Light.AMBER)
    assert felt.reason == (
        f"connected, 0 steps in {minutes} min (phase {phase}): hook batch of verl 0.9.1 was never called; "
        "missing: text, lengths and rewards. `rlvitals doctor` in the job's environment tells more"
    )


def test_a_silence_of_three_times_as_long_is_a_stall() -> None:
    assert pulse.take(signs(181, UNCALLED), NOW).state is RunState.STALLED
    assert pulse.take(signs(31, UNCALLED, phase="update"), NOW).light is Light.RED


def test_the_bound_of_a_phase_is_kept_to_the_second() -> None:
    for phase in Phase:
        bound = FIRST_STEP_WITHIN.get(phase.value, FIRST_STEP_ELSE)
        at, later = (
            Signs(phase=phase.value, began_at=NOW - ago, seen_at=NOW, progress_at=None, step_s=None)
            for ago in (bound, bound + timedelta(seconds=1))
        )
        assert not pulse.first_step_is_late(at, NOW)
        assert pulse.first_step_is_late(later, NOW)
    assert SILENT_TIMES > 1


def test_a_paused_finished_or_dead_client_is_not_called_blind() -> None:
    assert pulse.take(signs(500, UNCALLED, phase="paused"), NOW).state is RunState.PAUSED
    gone = signs(500, UNCALLED, seen_at=NOW - timedelta(minutes=40))
    assert pulse.take(gone, NOW).reason == "no word from the trainer for 40 min"


def test_a_client_without_a_table_is_told_from_one_with_blind_hooks() -> None:
    assert "the trainer has reported no step" in pulse.take(signs(70), NOW).reason


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row("a", "absent", why="no such method"), UNCALLED, row("b", "failing", why="KeyError: 'x'")], "hook b"),
        ([row("a", "absent", why="no such method"), UNCALLED], "hook batch"),
        ([row("a", "absent", why="no such method")], "hook a of verl 0.9.1 is not there (no such method)"),
        ([row("a", "absent", optional=True), UNCALLED], "hook batch"),
        ([row("b", "failing", why="KeyError: 'x'")], "fails (KeyError: 'x'); missing: what b gives"),
        ([row("a", "seen")], "1 of 1 hooks see, but no step has ended"),
    ],
)
def test_the_fault_that_explains_most_is_told(rows: list[dict[str, Any]], said: str) -> None:
    assert said in handshake.silence(handshake.read([table(*rows)]))


def test_a_hook_that_fails_is_told_at_once_and_heals() -> None:
    failing = row("batch", "failing", why="ValueError: odd")
    felt = pulse.take(signs(1, failing), NOW)
    assert (felt.state, felt.light) == (RunState.CREATED, Light.AMBER)
    assert "fails (ValueError: odd)" in felt.reason
    running = signs(5, row("batch", "seen"), phase="update", progress_at=NOW, steps=9)
    assert pulse.take(running, NOW).light is Light.GREEN


def test_steps_that_no_hook_has_seen_are_no_all_clear() -> None:
    running = signs(5, UNCALLED, phase="update", progress_at=NOW, steps=9)
    felt = pulse.take(running, NOW)
    assert (felt.state, felt.light) == (RunState.RUNNING, Light.AMBER)
    assert felt.reason.startswith("steps arrive, but not one hook sees: hook batch of verl 0.9.1")
    young = signs(5, UNCALLED, phase="update", progress_at=NOW, steps=2)
    assert pulse.take(young, NOW).light is Light.GREEN


def test_a_green_lamp_says_how_far_it_sees() -> None:
    running = signs(5, row("a", "seen"), row("b", "blind"), phase="update", progress_at=NOW, steps=9)
    felt = pulse.take(running, NOW)
    assert felt.light is Light.GREEN
    assert felt.reason.startswith("all quiet, as far as 1 of 2 hooks see: hook b of verl 0.9.1 was never called")
    whole = signs(5, row("a", "seen"), row("c", "absent", optional=True), progress_at=NOW, steps=9)
    assert pulse.take(whole, NOW).reason == "all quiet"


def test_a_run_that_ended_unseen_is_not_called_healthy() -> None:
    felt = pulse.take(signs(50, UNCALLED, phase="finished"), NOW)
    assert (felt.state, felt.light) == (RunState.FINISHED, Light.AMBER)
    assert felt.reason.startswith("finished, but no step was seen: hook batch")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
rows = st.dictionaries(
    st.sampled_from(["hook", "target", "gives", "state", "why", "seen", "optional"]),
    plain | st.sampled_from([s.value for s in HookState]),
)


@given(st.dictionaries(st.sampled_from(["framework", "version", "steps", "hooks"]), plain | st.lists(rows)))
def test_whatever_a_client_tells_becomes_a_table_and_words(payload: dict[str, Any]) -> None:
    view = read_table(payload, attempt="a", writer="w", at=NOW)
    assert view.steps >= 0
    told = handshake.view("r", "a", [view], steps=0, late=True)
    assert told.summary
    assert told.well or told.advice
    assert math.isfinite(sum(hook.seen for hook in view.hooks))


# in the database


def tell(
    store: Store, *rows: Any, seq: int, attempt: str = "a1", writer: str = "main", at: datetime = NOW, **other: Any
) -> None:
    payload = {"framework": "verl", "version": "0.9.1", "steps": 0, "hooks": list(rows)}
    event = Event(seq=seq, time_s=NOW_S, kind=EventKind.HOOK, step=other.pop("step_told", None), payload=payload)
    given = batch(attempt=attempt, writer=writer, events=(event,), **other)
    with store.begin() as connection:
        store_batch(connection, given, at)


def test_the_newest_table_of_each_writer_is_kept_and_a_resend_changes_nothing(store: Store) -> None:
    tell(store, UNCALLED, seq=1)
    tell(store, row("batch", "seen"), seq=5, at=after(60), step_told=3)
    tell(store, UNCALLED, seq=1, at=after(70))
    tell(store, row("loss", "seen"), seq=1, writer="rank1", at=after(80))
    with store.read() as connection:
        told = read_hooks(connection, "r1", None, after(90))
    assert [(t.writer, t.hooks[0].state.value, t.at, t.step) for t in told.tables] == [
        ("main", "seen", after(60), 3),
        ("rank1", "seen", after(80), None),
    ]
    assert (told.well, told.summary) == (True, "2 of 2 hooks see")


def test_an_attempt_has_its_own_table_and_an_older_one_can_be_asked_for(store: Store) -> None:
    tell(store, UNCALLED, seq=1)
    tell(store, row("batch", "seen"), seq=1, attempt="a2", at=after(9))
    with store.read() as connection:
        assert read_hooks(connection, "r1", None, after(9)).summary == "1 of 1 hooks see"
        older = read_hooks(connection, "r1", "a1", after(9))
    assert (older.attempt, older.well) == ("a1", False)
    assert older.summary.startswith("0 of 1 hooks see: hook batch of verl 0.9.1 was never called")
    assert "rlvitals doctor" in older.advice


def test_a_silent_run_turns_amber_with_time_alone_and_heals_with_its_first_step(store: Store) -> None:
    tell(store, UNCALLED, seq=1, heartbeat=heartbeat(Phase.STARTING))
    late = after(61 * 60)
    with store.begin() as connection:
        store_batch(connection, batch(heartbeat=heartbeat(Phase.STARTING)), late)
    with store.read() as connection:
        assert read_run(connection, "r1", NOW).light is Light.GREY
        silent = list_runs(connection, late)[0][0]
        assert (silent.light, silent.state) == (Light.AMBER, RunState.LATE)
        assert "connected, 0 steps in 61 min (phase starting): hook batch of verl 0.9.1" in silent.reason
        assert not read_hooks(connection, "r1", None, late).well
        assert read_hooks(connection, "r1", None, after(60)).summary == "0 of 1 hooks see so far"
    tell(store, row("batch", "seen"), seq=2, at=late)
    with store.begin() as connection:
        store_batch(connection, batch(step(3, 1, {"m": 1.0}), heartbeat=heartbeat(Phase.UPDATE, 1)), late)
    with store.read() as connection:
        healed = read_run(connection, "r1", late)
    assert (healed.light, healed.state, healed.reason) == (Light.GREEN, RunState.RUNNING, "all quiet")


def test_a_resumed_run_is_not_stalled_by_the_pause_between_its_attempts(store: Store) -> None:
    with store.begin() as connection:
        store_batch(connection, batch(step(1, 1, {"m": 1.0})), NOW)
    tomorrow = after(24 * 3600)
    with store.begin() as connection:
        store_batch(connection, batch(attempt="a2", heartbeat=heartbeat(Phase.STARTING)), tomorrow)
    with store.read() as connection:
        resumed = read_run(connection, "r1", tomorrow)
    assert (resumed.state, resumed.reason) == (RunState.CREATED, "waiting for the first step")


def test_a_run_without_hooks_has_an_empty_table_that_is_well(store: Store) -> None:
    with store.begin() as connection:
        store_batch(connection, batch(step(1, 1, {"m": 1.0})), NOW)
    with store.read() as connection:
        told = read_hooks(connection, "r1", None, NOW)
    assert (told.tables, told.well, told.advice) == ((), True, "")


def test_hostile_words_of_a_hook_are_stored_and_answered_as_text(store: Store) -> None:
    numbers = counting()
    hostile = ("\x00\ud800<script>", "' ; --", "x" * 9_000)
    for word, seq in itertools.product(hostile, [0]):
        tell(store, row(word, "failing", why=word, gives=word), seq=seq + next(numbers))
        with store.read() as connection:
            (shown,) = read_hooks(connection, "r1", None, NOW).tables[0].hooks
        assert len(shown.hook) <= 128
        assert "\x00" not in shown.hook
        shown.hook.encode()


@pytest.mark.parametrize("step", [2**53 + 1, 2**63, -(2**70)])
def test_a_table_told_at_a_step_that_no_database_holds_is_refused_and_the_rest_is_stored(
    store: Store, step: int
) -> None:
    event = Event(seq=2, time_s=NOW_S, kind=EventKind.HOOK, step=step, payload={"hooks": [row("a", "seen")]})
    with store.begin() as connection:
        stored = store_batch(connection, batch(events=(event,)), NOW)
    assert (stored.stored, stored.stored_through, [r.field for r in stored.refused]) == (0, 2, ["events"])
    with store.read() as connection:
        assert read_hooks(connection, "r1", None, NOW).tables == ()
