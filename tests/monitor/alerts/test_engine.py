"""The engine on both databases: exactly once, whatever dies where."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from rlvitals.contract.alert import Alert, AlertState, Proposal, Severity, Transition
from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.alerts import attention, engine
from rlvitals_monitor.alerts.engine import Cache, advance
from rlvitals_monitor.rules.loader import load_rules, load_text
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store import alerts, evaluations
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.tables import transitions
from tests.monitor.batches import NOW, batch, step

INF, NAN = math.inf, math.nan
RULES = load_rules()
FIRING, RESOLVED = AlertState.FIRING, AlertState.RESOLVED
PULL, QUIET = {"kl.pull_ratio": 4.0, "kl.coef": 0.4}, {"kl.pull_ratio": 0.1, "kl.coef": 0.4}
RUN = [QUIET] * 6 + [PULL] * 3 + [QUIET] * 8


def send(store: Store, values: Sequence[Mapping[str, float]], *, first: int = 1, attempt: str = "a1") -> int:
    """Steps from ``first`` on, as one batch; the attempt's number."""
    reports = [step(first + place, first + place, dict(row)) for place, row in enumerate(values)]
    with store.begin() as connection:
        sent = batch(*reports, attempt=attempt, info=RunInfo(id="r1", config={"kl_coef": 0.4}))
        return store_batch(connection, sent, NOW).attempt_number


def judge(
    store: Store, number: int, rules: Sequence[Rule] = RULES, cache: Cache | None = None, **more: int
) -> tuple[Transition, ...]:
    with store.begin() as connection:
        return advance(connection, number, rules, NOW, cache=cache, **more).transitions


def recorded(store: Store) -> list[tuple[str, str, str, int]]:
    with store.read() as connection:
        found = alerts.transitions_of(connection, "r1", 1000)
    return [(t.alert.rule, t.before.value, t.after.value, t.step) for t in found]


WHOLE = [("kl_pull_dominates", "inactive", "firing", 8), ("kl_pull_dominates", "firing", "resolved", 14)]


def test_an_alert_is_written_with_its_numbers_words_and_proposal(store: Store) -> None:
    number = send(store, RUN[:9])
    (fired,) = judge(store, number)
    alert = fired.alert
    assert (alert.run, alert.attempt, alert.rule, alert.severity) == (
        "r1",
        "a1",
        "kl_pull_dominates",
        Severity.WARNING,
    )
    assert (alert.state, alert.since_step, alert.fired_step, alert.value, alert.threshold) == (
        FIRING,
        7,
        8,
        4.0,
        1.0,
    )
    assert alert.since_time < (alert.fired_at or NOW)
    assert alert.summary.startswith("The KL pull is 4 times the policy's own")
    assert alert.runbook == "docs/runbooks/kl_pull_dominates.md"
    assert alert.proposal == Proposal(kind=CommandKind.SET_KL_COEF, argument=0.05)
    with store.read() as connection:
        assert alerts.find(connection, alert.id) == alert
        assert alerts.unrouted(connection, 10) == [fired]


def test_an_end_keeps_what_the_alert_fired_with(store: Store) -> None:
    number = send(store, RUN)
    fired, ended = judge(store, number)
    assert (ended.alert.state, ended.alert.resolved_step, ended.alert.value) == (RESOLVED, 14, 4.0)
    assert (ended.alert.id, ended.alert.summary) == (fired.alert.id, fired.alert.summary)
    assert recorded(store) == WHOLE


def test_judging_twice_finds_nothing_new(store: Store) -> None:
    number = send(store, RUN)
    assert len(judge(store, number)) == 2
    assert judge(store, number) == ()
    assert recorded(store) == WHOLE


def test_the_same_steps_sent_again_are_not_judged_again(store: Store) -> None:
    number = send(store, RUN)
    judge(store, number)
    assert send(store, RUN) == number
    assert judge(store, number) == ()
    assert recorded(store) == WHOLE


@pytest.mark.parametrize("with_cache", [True, False])
@pytest.mark.parametrize("limit", [1, 3, 500])
def test_steps_judged_in_any_portions_give_the_same(store: Store, limit: int, with_cache: bool) -> None:
    number, cache = send(store, RUN), Cache() if with_cache else None
    for _ in range(len(RUN)):
        judge(store, number, cache=cache, limit=limit)
    assert recorded(store) == WHOLE


def test_a_transaction_that_fails_leaves_nothing_and_the_next_process_goes_on(store: Store) -> None:
    number, cache = send(store, RUN), Cache()
    judge(store, number, cache=cache, limit=7)

    def dies() -> None:
        with store.begin() as connection:
            advance(connection, number, RULES, NOW, cache=cache)
            raise RuntimeError("planted")

    with pytest.raises(RuntimeError, match="planted"):
        dies()
    cache.forget(number)
    assert recorded(store) == []
    judge(store, number, cache=cache)
    assert recorded(store) == WHOLE


def test_a_cache_that_another_process_overtook_is_not_believed(store: Store) -> None:
    number, mine = send(store, RUN), Cache()
    judge(store, number, cache=mine, limit=3)
    judge(store, number, limit=6)
    judge(store, number, cache=mine)
    assert recorded(store) == WHOLE


def test_a_cursor_that_was_set_back_by_hand_records_nothing_twice(store: Store) -> None:
    number = send(store, RUN)
    with store.begin() as connection:
        advance(connection, number, RULES, NOW, limit=5)
        kept = evaluations.find(connection, number)
    judge(store, number)
    assert kept is not None
    with store.begin() as connection:
        evaluations.keep(connection, number, kept.step, kept.memory)
    assert judge(store, number) == ()
    assert recorded(store) == WHOLE


def test_nan_the_infinities_and_missing_are_judged_as_four_different_things(store: Store) -> None:
    (rule,) = load_text(
        "groups:\n  - name: g\n    rules:\n      - alert: a\n        expr: nonfinite(kl.k3) or kl.k3 > 1\n"
        "        labels: {severity: warning}\n        annotations: {summary: '{value}'}\n"
    )
    number = send(
        store, [{"kl.k3": NAN}, {"kl.k3": 0.0}, {"kl.k3": INF}, {"kl.k1": 0.0}, {"kl.k3": 0.0}, {"kl.k3": -INF}]
    )
    found = judge(store, number, [rule])
    assert [(t.step, t.after, t.alert.summary) for t in found] == [
        (1, FIRING, "nan"),
        (2, RESOLVED, "nan"),
        (3, FIRING, "inf"),
        (5, RESOLVED, "inf"),
        (6, FIRING, "-inf"),
    ]
    with store.read() as connection:
        last = alerts.find(connection, found[2].alert.id)
    assert last is not None
    assert last.value == INF


def test_a_newer_attempt_ends_the_open_alerts_of_the_older(store: Store) -> None:
    first = send(store, RUN[:9])
    judge(store, first)
    second = send(store, [QUIET] * 3, attempt="a2")
    (ended,) = judge(store, second)
    assert (ended.alert.attempt, ended.after, ended.reason) == ("a1", RESOLVED, "a newer attempt of the run began")
    assert judge(store, second) == judge(store, first) == ()


def test_what_a_process_remembers_of_an_attempt_that_was_ended_elsewhere_is_not_believed(store: Store) -> None:
    number, mine = send(store, RUN[:9]), Cache()
    judge(store, number, cache=mine)
    judge(store, send(store, [QUIET], attempt="a2"), cache=Cache())
    send(store, RUN[9:], first=10)
    judge(store, number, cache=mine)
    told = [(after, at) for _, _, after, at in recorded(store)]
    assert told == [("firing", 8), ("resolved", 9)], "none ends twice"


def test_a_second_trainer_of_the_run_tells_of_its_alert_once_however_often_the_newer_one_moves(
    store: Store,
) -> None:
    old, new = send(store, RUN[:9]), 0
    judge(store, old)
    for at in range(10, 14):
        new = send(store, [QUIET], first=at, attempt="a2")
        judge(store, new)
        send(store, [{**PULL, "gradient.norm": NAN}], first=at)
        judge(store, old)
    assert sorted((rule, after) for rule, _, after, _ in recorded(store)) == [
        ("kl_pull_dominates", "firing"),
        ("kl_pull_dominates", "resolved"),
        ("nonfinite", "firing"),  # what comes late of an attempt that ended is still told of, once
        ("nonfinite", "resolved"),
    ]
    send(store, [PULL] * 3, first=20, attempt="a2")
    assert [fired.alert.rule for fired in judge(store, new)] == ["kl_pull_dominates"]


def test_an_older_attempt_does_not_end_the_alerts_of_the_newer(store: Store) -> None:
    first = send(store, [QUIET] * 3)
    second = send(store, RUN[:9], attempt="a2")
    judge(store, second)
    assert judge(store, first) == ()


def test_attempts_do_not_share_memory_or_ids(store: Store) -> None:
    (one,) = judge(store, send(store, RUN[:9]))
    two = judge(store, send(store, RUN[:9], attempt="a2"))[-1]
    assert (one.alert.id, one.id) != (two.alert.id, two.id)
    assert two.step == one.step == 8


def test_the_settings_of_the_run_are_read_at_each_call(store: Store) -> None:
    number = send(store, [{"gradient.norm": 1.0}, {"gradient.norm": NAN}])
    (fired,) = judge(store, number)
    assert fired.alert.rule == "nonfinite"


def test_an_acknowledgement_survives_the_end_of_the_alert(store: Store) -> None:
    number = send(store, RUN[:9])
    (fired,) = judge(store, number)
    with store.begin() as connection:
        attention.acknowledge(connection, fired.alert.id, "ada", NOW)
    send(store, RUN[9:], first=10)
    (ended,) = judge(store, number)
    assert ended.alert.acknowledged_by == "ada"


def test_an_attempt_that_is_not_there_is_nothing(store: Store) -> None:
    assert judge(store, 999) == ()


def test_attempts_with_new_steps_are_found_and_no_others(store: Store) -> None:
    number = send(store, RUN[:3])
    with store.read() as connection:
        assert evaluations.behind(connection, 10) == [(number, "r1")]
    judge(store, number)
    with store.read() as connection:
        assert evaluations.behind(connection, 10) == []
    send(store, RUN[3:4], first=4)
    with store.read() as connection:
        assert evaluations.behind(connection, 10) == [(number, "r1")]


def test_every_change_is_one_row(store: Store) -> None:
    number = send(store, (RUN + [QUIET] * 3) * 4)
    judge(store, number)
    with store.read() as connection:
        rows = connection.scalar(select(func.count()).select_from(transitions))
        found, _ = alerts.page(connection, run="r1", limit=100)
    assert rows == 8
    assert [a.state for a in found] == [RESOLVED] * 4


def test_pages_go_through_all_alerts_once_newest_first(store: Store) -> None:
    judge(store, send(store, (RUN + [QUIET] * 3) * 4))
    seen: list[Alert] = []
    with store.read() as connection:
        after = None
        while True:
            items, after = alerts.page(connection, run="r1", after=after, limit=3)
            seen += items
            if after is None:
                break
        firing, _ = alerts.page(connection, states=[FIRING])
        nobody, _ = alerts.page(connection, run="r2")
    steps = [a.since_step for a in seen]
    assert steps == sorted(steps, reverse=True)
    assert len({a.id for a in seen}) == 4
    assert (firing, nobody) == ([], [])


def test_a_cache_forgets_the_oldest_attempt_first() -> None:
    from rlvitals_monitor.alerts.memory import begin

    cache = Cache(limit=2)
    for number in (1, 2, 3):
        cache.put(number, 5, begin((), {}))
    assert [cache.take(n, 5) is not None for n in (1, 2, 3)] == [False, True, True]
    cache.put(2, 5, begin((), {}))
    assert cache.take(2, 6) is None


def test_a_clock_that_runs_ahead_on_the_trainer_s_side_does_not_reach_the_future(store: Store) -> None:
    number = send(store, RUN[:9])
    with store.begin() as connection:
        (fired,) = advance(connection, number, RULES, NOW + timedelta(seconds=3)).transitions
    assert fired.at == NOW + timedelta(seconds=3)


def test_the_batch_of_one_call_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    number = send(store, RUN)
    with store.begin() as connection:
        assert advance(connection, number, RULES, NOW, limit=4).steps == 4
        assert evaluations.cursor(connection, number) == 4
    assert engine.STEPS_A_CALL <= 1000
