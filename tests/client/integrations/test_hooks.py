"""The hook table: what was found, wrapped, seen, and what is blind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlvitals.contract.report import EventKind
from rlvitals.integrations.hooks import (
    BLIND_AFTER_STEPS,
    CHANGES_TOLD_MAX,
    RETOLD_EVERY_STEPS,
    HookState,
    HookTable,
    wrap,
)


class _Reporter:
    """Keeps the events that it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[EventKind, int | None, dict[str, Any]]] = []

    def event(self, kind: EventKind, step: int | None = None, **payload: Any) -> None:
        self.events.append((kind, step, payload))


@pytest.fixture
def reporter() -> Any:
    return _Reporter()


def _table() -> HookTable:
    table = HookTable("verl", "0.9.1")
    table.add("batch", "PPOTrainer._compute_metrics", "text, lengths, rewards", patched=True)
    table.add("loss", "losses.ppo_loss", "the importance ratio", patched=False, why="the legacy worker has none")
    return table


def test_a_patched_hook_that_shows_nothing_is_blind_after_some_steps(reporter: Any) -> None:
    table = _table()
    states = []
    for step in range(BLIND_AFTER_STEPS):
        table.step_ends(reporter, step)
        states.append(table.rows()[0]["state"])
    assert states == ["patched"] * (BLIND_AFTER_STEPS - 1) + ["blind"]


def test_a_hook_that_has_shown_something_is_seen_and_counted(reporter: Any) -> None:
    table = _table()
    table.saw("batch")
    table.step_ends(reporter, 1)
    assert table.rows()[0]["state"] == HookState.SEEN.value
    assert table.rows()[0]["seen"] == 1


def test_an_absent_hook_says_why_and_an_optional_one_never_turns_blind(reporter: Any) -> None:
    table = _table()
    table.add("dump", "PPOTrainer.dump", "nothing else", patched=True, optional=True)
    for step in range(5):
        table.step_ends(reporter, step)
    assert table.rows()[1]["state"] == "absent"
    assert table.rows()[1]["why"] == "the legacy worker has none"
    assert table.rows()[2]["state"] == "patched"


def test_the_table_is_told_only_when_a_state_changes(reporter: Any) -> None:
    table = _table()
    table.tell(reporter, 0)
    for step in range(1, 10):
        table.saw("batch")
        table.step_ends(reporter, step)
    assert [step for _, step, _ in reporter.events] == [0, 0]
    assert reporter.events[0][0] is EventKind.HOOK
    assert reporter.events[1][2]["hooks"][0]["state"] == "seen"


def test_a_first_failure_is_told_at_once_since_no_step_may_ever_end(reporter: Any) -> None:
    table = _table()
    table.failed("batch", ValueError("before anybody was told of the table"))
    assert reporter.events == []
    table.tell(reporter)
    table.failed("loss", "of a place that is not patched, so nothing changes")
    assert [payload["hooks"][0]["state"] for _, _, payload in reporter.events] == ["failing"]
    table.add("norm", "Actor.step", "the gradient norm", patched=True)
    table.failed("norm", KeyError("grad_norm"))
    assert reporter.events[-1][2]["hooks"][2] | {"gives": ""} == {
        "hook": "norm",
        "target": "Actor.step",
        "gives": "",
        "state": "failing",
        "why": "KeyError: 'grad_norm'",
        "seen": 0,
        "optional": False,
    }


def test_counts_are_retold_so_that_a_reader_of_the_journal_sees_them_grow(reporter: Any) -> None:
    table = _table()
    for step in range(1, 2 * RETOLD_EVERY_STEPS + 1):
        table.saw("batch")
        table.step_ends(reporter, step)
    assert [payload["hooks"][0]["seen"] for _, _, payload in reporter.events] == [
        1,
        RETOLD_EVERY_STEPS,
        2 * RETOLD_EVERY_STEPS,
    ]


def test_a_hook_that_fails_every_other_time_does_not_fill_the_journal(reporter: Any) -> None:
    table = _table()
    for step in range(1, 10 * CHANGES_TOLD_MAX):
        table.saw("batch") if step % 2 else table.failed("batch", "odd")
        table.step_ends(reporter, step)
    assert len(reporter.events) < CHANGES_TOLD_MAX + 10 * CHANGES_TOLD_MAX / RETOLD_EVERY_STEPS + 2


def test_a_wrap_hands_on_the_result_and_a_failure_of_ours_stays_with_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    table, owner, seconds = _table(), SimpleNamespace(act=lambda x: x + 1), []

    def after(result: int, x: int) -> None:
        raise ValueError(f"{result} from {x}")

    assert wrap(owner, "act", after=after, spent=seconds.append, table=table, hook="batch")
    assert owner.act(1) == 2
    assert table.rows()[0]["state"] == "failing"
    assert table.rows()[0]["why"] == "ValueError: 2 from 1"
    assert len(seconds) == 1


def test_a_wrap_of_what_is_not_there_says_so() -> None:
    assert not wrap(SimpleNamespace(), "act", after=lambda result: None)
