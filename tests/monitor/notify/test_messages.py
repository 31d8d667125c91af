"""From deliveries to messages, on both databases: groups, digests, silences, reminders, escalations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import httpx2
import pytest
from sqlalchemy import func, select, update

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert, AlertState, Severity, Transition
from rlvitals.contract.view import DeliveryView, SendView
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify.attempt import record, take
from rlvitals_monitor.notify.channel import Channel, Channels, Escalation
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.dispatch import deliver_due, route
from rlvitals_monitor.notify.message import Tone
from rlvitals_monitor.notify.notice import ITEMS_LIMIT, read_notice
from rlvitals_monitor.notify.notification import Notification, Purpose
from rlvitals_monitor.notify.parcel import Answer, Verdict
from rlvitals_monitor.silences.silence import Silence
from rlvitals_monitor.store import deliveries, messages, outbox, silences, tables
from rlvitals_monitor.store.engine import Store
from tests.monitor.notify.conftest import Opened, channel_to
from tests.monitor.notify.provider import Said
from tests.monitor.notify.test_folding import LEAD, SYMPTOM
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant, plant_run, plant_transition, resolved

FIRING = a_transition()
OVER = resolved(FIRING, at=later(50))
TAKEN = Answer(verdict=Verdict.DELIVERED, words="ok")


def route_all(store: Store, transitions: Sequence[Transition], now: datetime, *channels: Channel) -> None:
    with store.begin() as conn:
        for transition in transitions:
            route(conn, transition, Channels(items=channels), now)


def plant_all(store: Store, *transitions: Transition) -> None:
    """With their runs."""
    with store.begin() as conn:
        for run in dict.fromkeys(t.alert.run for t in transitions):
            plant_run(conn, run, name=run)
        for transition in transitions:
            plant_transition(conn, transition)


def become(store: Store, alert: Alert, **given: object) -> None:
    """The alert as it is now."""
    now = replace(alert, **given)  # type: ignore[arg-type]
    with store.begin() as conn:
        values = {"state": now.state.value, "body": codec.encode(now)}
        conn.execute(update(tables.alerts).where(tables.alerts.c.id == alert.id).values(values))


def say(store: Store, channel: Channel, now: datetime) -> Notification | None:
    """What the channel would be told now, and its claim recorded as delivered."""
    taken = take(store, channel, "me", now)
    if taken is None:
        return None
    with store.begin() as conn:
        told = read_notice(conn, taken, channel, "https://me", now)
        messages.record_delivered(conn, taken, "ok", now)
    return told


def by_state(store: Store) -> dict[str, int]:
    with store.read() as conn:
        query = select(tables.deliveries.c.state, func.count()).group_by(tables.deliveries.c.state)
        return {row[0]: row[1] for row in conn.execute(query)}


def of(store: Store, transition: str, channel: str = "pager", purpose: str = "news") -> DeliveryView:
    with store.read() as conn:
        items, _ = deliveries.page(conn, limit=200)
    key = (transition, channel, purpose)
    return next(one for one in items if (one.transition_id, one.channel, one.purpose) == key)


def test_alerts_of_one_run_go_in_one_message_after_the_group_wait(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), group_wait_s=10.0, group_interval_s=300.0)
    second = a_transition(an_alert(id="a2", rule="reward_flat"), id="x2", at=later(4))
    plant(store, FIRING, second)
    route_all(store, [FIRING], NOW, channel)
    route_all(store, [second], later(4), channel)
    assert say(store, channel, later(9)) is None
    told = say(store, channel, later(10))
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x1", "x2"]
    assert told.run is not None
    assert (told.run.id, told.counts) == ("r1", ())
    assert of(store, "x1").message_id == of(store, "x2").message_id == told.id


def test_an_alert_that_ends_within_the_group_wait_is_told_as_over_with_how_long_it_lasted(
    store: Store, provide: Opened
) -> None:
    channel = channel_to(provide(), group_wait_s=120.0)
    plant(store, FIRING, OVER)
    route_all(store, [FIRING], NOW, channel)
    become(store, OVER.alert)
    route_all(store, [OVER], later(50), channel)
    told = say(store, channel, later(120))
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x1", "x2"], "machines hear of both"
    assert told.is_over
    message = compose(told)
    assert message.title == "RESOLVED: kl_pull_dominates on tiny run (r1)"
    assert message.tone is Tone.RESOLVED
    assert dict(message.facts)["Lasted"] == "50 s, 33 steps"
    assert by_state(store) == {"delivered": 2}


def test_what_comes_within_the_interval_waits_and_a_stronger_alert_breaks_it(
    store: Store, provide: Opened
) -> None:
    channel = channel_to(provide(), group_interval_s=300.0)
    mild = a_transition(an_alert(id="a2"), id="x2", at=later(30))
    worse = a_transition(an_alert(id="a3", rule="other", severity=Severity.CRITICAL), id="x3", at=later(60))
    plant(store, FIRING, mild, worse)
    route_all(store, [FIRING], NOW, channel)
    assert say(store, channel, NOW) is not None
    route_all(store, [mild], later(30), channel)
    assert say(store, channel, later(59)) is None
    route_all(store, [worse], later(60), channel)
    told = say(store, channel, later(60))
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x3", "x2"]


def test_many_runs_become_one_digest_whose_counts_add_up(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), budget=2)
    fired = [
        a_transition(an_alert(id=f"a{i}", run=f"r{i % 7}", rule=f"rule{i % 3}"), id=f"x{i}", at=later(i))
        for i in range(100)
    ]
    ended = [resolved(t, id=f"{t.id}-over", at=later(200)) for t in fired[:30]]
    plant_all(store, *fired, *ended)
    route_all(store, [*fired, *ended], NOW, channel)
    told = say(store, channel, later(300))
    assert told is not None
    assert told.run is None
    assert len(told.items) == ITEMS_LIMIT
    assert (sum(c.firing for c in told.counts), sum(c.resolved for c in told.counts)) == (100, 30)
    assert sum(times for count in told.counts for _, times in count.rules) == 130
    assert len(told.counts) == 7
    assert by_state(store) == {"delivered": 130}


def test_no_more_messages_go_in_any_minute_than_the_budget(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), budget=2)
    went: list[int] = []
    for moment in range(0, 150, 10):
        fired = a_transition(an_alert(id=f"a{moment}", run=f"r{moment}"), id=f"x{moment}", at=later(moment))
        plant_all(store, fired)
        route_all(store, [fired], later(moment), channel)
        taken = take(store, channel, "me", later(moment))
        if taken is not None:
            went.append(moment)
            with store.begin() as conn:
                record(conn, channel, taken, TAKEN, later(moment), 0.5)
    assert went == [0, 10, 60, 70, 120, 130]


def test_each_attempt_is_kept_with_the_providers_words(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    channel = channel_to(provide(Said(status=500, body=b"oops"), Said(status=503, body=b"later")))
    plant(store, FIRING)
    route_all(store, [FIRING], NOW, channel)
    for seconds in (0, 100, 200):
        deliver_due(store, Channels(items=(channel,)), later(seconds), client)
    with store.read() as conn:
        sent: tuple[SendView, ...] | None = messages.sends_of(conn, of(store, "x1").id)
        assert messages.sends_of(conn, "nobody") is None
    assert sent is not None
    assert [(one.number, one.verdict, one.answer) for one in sent] == [
        (1, "retry", "HTTP 500: oops"),
        (2, "retry", "HTTP 503: later"),
        (3, "delivered", "HTTP 200: ok"),
    ]


def test_a_silenced_alert_is_told_at_the_silences_end_if_it_still_fires(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    other = a_transition(an_alert(id="a2", rule="reward_flat"), id="x2")
    gone = a_transition(an_alert(id="a3"), id="x3")
    gone_over = resolved(gone, id="x4", at=later(20))
    plant(store, FIRING, other, gone, gone_over)
    silence(store, "rule=kl_*")
    route_all(store, [FIRING, other, gone], NOW, channel)
    told = say(store, channel, NOW)
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x2"]
    assert of(store, "x1").state == "silenced"
    assert of(store, "x1").answer == "silenced by ada until 2026-05-04 12:10 UTC: maintenance"
    become(store, gone.alert, state=AlertState.RESOLVED)
    route_all(store, [gone_over], later(20), channel)
    assert say(store, channel, later(599)) is None
    told = say(store, channel, later(601))
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x1"]
    assert (of(store, "x3").state, of(store, "x4").state) == ("dropped", "dropped")
    assert of(store, "x4").answer == "nobody was told here that it fires"


def silence(store: Store, *matchers: str) -> Silence:
    made = Silence(
        id="s1",
        matchers=tuple(map(Matcher.read, matchers)),
        starts_at=NOW,
        ends_at=later(600),
        created_at=NOW,
        who="ada",
        why="maintenance",
    )
    with store.begin() as conn:
        return silences.add(conn, made)


def test_a_silence_that_is_ended_early_is_noticed(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    plant(store, FIRING)
    silence(store, "run=r1")
    route_all(store, [FIRING], NOW, channel)
    assert say(store, channel, NOW) is None
    with store.begin() as conn:
        assert silences.end(conn, "s1", "ada", later(5))
    assert say(store, channel, later(31)) is not None


def test_what_fires_is_told_again_until_somebody_looks_after_it(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), repeat_s=3600.0)
    channels = Channels(items=(channel,))
    plant(store, FIRING)
    route_all(store, [FIRING], NOW, channel)
    sent = [deliver_due(store, channels, later(seconds)) for seconds in (0, 3500, 3700, 7200, 7400)]
    assert sent == [1, 0, 1, 0, 1]
    become(store, FIRING.alert, acknowledged_by="ada")
    assert deliver_due(store, channels, later(99999)) == 0
    with store.read() as conn:
        rounds = sorted((one.round, one.state) for one in deliveries.page(conn)[0])
    assert rounds == [(0, "delivered"), (1, "delivered"), (2, "delivered"), (3, "dropped")]


def test_a_run_that_ends_while_an_alert_fires_reminds_nobody_for_ever(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), repeat_s=3600.0)
    plant(store, FIRING)
    route_all(store, [FIRING], NOW, channel)
    assert deliver_due(store, Channels(items=(channel,)), NOW) == 1
    with store.begin() as conn:
        conn.execute(update(tables.runs).values(phase="finished"))
    assert deliver_due(store, Channels(items=(channel,)), later(99999)) == 0
    with store.read() as conn:
        assert {one.state for one in deliveries.page(conn)[0]} == {"delivered", "dropped"}


def test_nobody_answers_so_the_second_channel_hears_and_hears_of_the_end(store: Store, provide: Opened) -> None:
    team = channel_to(provide(), name="team", escalation=Escalation(to="boss", after_s=600.0))
    boss = channel_to(provide(), name="boss", severity=Severity.CRITICAL)
    plant(store, FIRING, OVER)
    route_all(store, [FIRING], NOW, team, boss)
    assert say(store, team, NOW) is not None
    assert say(store, boss, later(599)) is None
    told = say(store, boss, later(600))
    assert told is not None
    assert told.lead.purpose is Purpose.ESCALATION
    become(store, FIRING.alert, state=AlertState.RESOLVED)
    route_all(store, [OVER], later(700), team, boss)
    told = say(store, boss, later(700))
    assert told is not None
    assert told.is_over


def test_an_answer_in_time_spares_the_second_channel_also_the_end(store: Store, provide: Opened) -> None:
    team = channel_to(provide(), name="team", escalation=Escalation(to="boss", after_s=600.0))
    boss = channel_to(provide(), name="boss", severity=Severity.CRITICAL)
    plant(store, FIRING, OVER)
    route_all(store, [FIRING], NOW, team, boss)
    become(store, FIRING.alert, acknowledged_by="ada")
    assert say(store, boss, later(600)) is None
    assert of(store, "x1", "boss", "escalation").answer == "acknowledged by ada"
    route_all(store, [OVER], later(700), team, boss)
    assert say(store, boss, later(700)) is None
    assert of(store, "x2", "boss").state == "dropped"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_any_value_reaches_the_message_as_it_is(store: Store, provide: Opened, value: float | None) -> None:
    channel = channel_to(provide())
    fired = a_transition(an_alert(value=value))
    plant(store, fired)
    route_all(store, [fired], NOW, channel)
    told = say(store, channel, NOW)
    assert told is not None
    seen = told.lead.transition.alert.value
    assert seen is value if value is None else repr(seen) == repr(value)


def test_a_message_reads_the_same_each_time(store: Store, provide: Opened) -> None:
    channel = channel_to(provide(), budget=1)
    fired = [a_transition(an_alert(id=f"a{i}", run=f"r{i % 3}"), id=f"x{i}") for i in range(9)]
    plant_all(store, *fired)
    route_all(store, fired, NOW, channel)
    taken = take(store, channel, "me", NOW)
    assert taken is not None
    with store.begin() as conn:
        first, second = (read_notice(conn, taken, channel, "", later(seconds)) for seconds in (0, 500))
    assert first == second


def test_a_symptom_of_a_cause_that_was_told_has_no_message_of_its_own(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    lead, symptom = (
        a_transition(an_alert(id=rule, rule=rule, severity=Severity.CRITICAL, fired_step=step), id=rule, step=step)
        for rule, step in ((LEAD, 100), (SYMPTOM, 110))
    )
    other = a_transition(an_alert(id="mine", rule="mine"), id="mine")
    plant(store, lead, symptom, other)
    route_all(store, [lead], NOW, channel)
    assert say(store, channel, NOW) is not None
    route_all(store, [symptom], later(30), channel)
    assert say(store, channel, later(30)) is None
    assert of(store, SYMPTOM).answer == f"a symptom of {LEAD}, which was told"
    assert say(store, channel, later(100)) is None
    route_all(store, [other], later(200), channel)
    told = say(store, channel, later(200))
    assert told is not None
    assert {item.transition.id for item in told.items} == {"mine", SYMPTOM}


def test_a_symptom_is_told_when_its_cause_is_over_and_it_still_fires(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    lead, symptom, brief = (
        a_transition(an_alert(id=key, rule=rule, severity=Severity.CRITICAL, fired_step=step), id=key, step=step)
        for key, rule, step in (("lead", LEAD, 100), ("symptom", SYMPTOM, 110), ("brief", SYMPTOM, 111))
    )
    plant(store, lead, symptom, brief)
    route_all(store, [lead], NOW, channel)
    assert say(store, channel, NOW) is not None
    route_all(store, [symptom, brief], later(30), channel)
    assert say(store, channel, later(30)) is None
    become(store, lead.alert, state=AlertState.RESOLVED)
    become(store, brief.alert, state=AlertState.RESOLVED)
    told = say(store, channel, later(100))
    assert told is not None
    assert [item.transition.id for item in told.items] == ["symptom"]
    assert (of(store, "brief").state, of(store, "brief").answer) == (
        "dropped",
        "it was over before it was to be told",
    )


def test_a_plan_that_another_process_was_quicker_to_carry_out_changes_nothing(
    store: Store, provide: Opened
) -> None:
    channel = channel_to(provide())
    later_one = a_transition(an_alert(id="a2"), id="x9")
    plant(store, FIRING, later_one)
    route_all(store, [FIRING], NOW, channel)
    assert take(store, channel, "quick", NOW) is not None
    route_all(store, [later_one], NOW, channel)
    stale = (of(store, "x1").id, of(store, "x9").id)
    with pytest.raises(messages.SealLost), store.begin() as conn:
        messages.seal(conn, "pager", "r1", stale, "slow", NOW, lease_s=60.0)
    assert (of(store, "x1").message_id != "", of(store, "x9").message_id) == (True, "")
    told = say(store, channel, NOW)
    assert told is not None
    assert [item.transition.id for item in told.items] == ["x9"]


def test_what_a_plan_drops_or_lets_wait_leaves_what_was_sealed_alone(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    plant(store, FIRING)
    route_all(store, [FIRING], NOW, channel)
    assert take(store, channel, "quick", NOW) is not None
    with store.begin() as conn:
        outbox.drop(conn, [of(store, "x1").id], "too late")
        outbox.postpone(conn, [of(store, "x1").id], later(99), "too late")
    assert (of(store, "x1").state, of(store, "x1").answer) == ("waiting", "")
