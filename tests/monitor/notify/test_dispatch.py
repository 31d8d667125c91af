"""The outbox on both databases, against real providers: at least once, recorded exactly once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, time
from zoneinfo import ZoneInfo

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, update

from rlvitals.contract.alert import AlertState, Severity, Transition
from rlvitals.contract.view import DeliveryView
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify import dispatch
from rlvitals_monitor.notify.attempt import (
    ATTEMPTS_LIMIT,
    BACKOFF_CAP_S,
    LEASE_MARGIN_S,
    LEASE_TIMES,
    backoff_s,
    record,
    take,
)
from rlvitals_monitor.notify.channel import Channel, ChannelKind, Channels
from rlvitals_monitor.notify.dispatch import deliver_due, fire_test, route, view_channels
from rlvitals_monitor.notify.hours import QuietHours
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.parcel import RETRY_AFTER_CAP_S, Answer, Verdict
from rlvitals_monitor.notify.post import build_client
from rlvitals_monitor.store import deliveries, messages, turns
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.messages import Claim
from rlvitals_monitor.store.tables import meta, sends, transitions
from tests.monitor.notify.conftest import Opened, channel_to
from tests.monitor.notify.provider import Said
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant, plant_run, plant_transition, resolved

FIRING = a_transition()
PAGER = Channel(name="pager", kind=ChannelKind.WEBHOOK, url="https://pager.example/hook", timeout_s=1.0)
LEASE_S = LEASE_MARGIN_S + LEASE_TIMES * PAGER.timeout_s
Deliver = Callable[..., int]


def channels_of(*items: Channel) -> Channels:
    return Channels(items=items, public_url="https://me")


def plant_and_route(store: Store, channels: Channels) -> None:
    plant(store, FIRING)
    route_again(store, channels)


def route_again(store: Store, channels: Channels) -> int:
    with store.begin() as conn:
        return route(conn, FIRING, channels, NOW)


def shown(store: Store) -> list[DeliveryView]:
    with store.read() as conn:
        items, _ = deliveries.page(conn)
    return list(items)


def only(store: Store) -> DeliveryView:
    (delivery,) = shown(store)
    return delivery


def claim(store: Store, now: datetime, owner: str = "dead", channel: Channel = PAGER) -> Claim | None:
    return take(store, channel, owner, now)


def route_all(store: Store, transitions: Sequence[Transition], channels: Channels, now: datetime = NOW) -> None:
    with store.begin() as conn:
        for transition in transitions:
            route(conn, transition, channels, now)


def alerts_of_runs(store: Store, count: int) -> list[Transition]:
    """An alert that fires in each of so many runs."""
    many = [a_transition(an_alert(id=f"a{i}", run=f"r{i}"), id=f"x{i}") for i in range(count)]
    with store.begin() as conn:
        for transition in many:
            plant_run(conn, transition.alert.run)
            plant_transition(conn, transition)
    return many


def test_a_message_is_delivered_once_and_stays_so(store: Store, provide: Opened, client: httpx2.Client) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider))
    plant_and_route(store, channels)
    assert deliver_due(store, channels, NOW, client) == 1
    assert deliver_due(store, channels, later(9999), client) == 0
    delivery = only(store)
    assert (delivery.state, delivery.attempts, delivery.answer) == ("delivered", 1, "HTTP 200: ok")
    assert delivery.delivered_at is not None
    of_what = (delivery.run, delivery.rule, delivery.severity, delivery.change, delivery.step)
    assert of_what == ("r1", FIRING.alert.rule, FIRING.alert.severity.value, "firing", FIRING.step)
    (got,) = provider.got
    assert got.headers["webhook-id"] == delivery.message_id
    assert json.loads(got.body)["link"] == "https://me/ui/run/r1?attempt=t1&from=20&to=220"


def test_routing_twice_changes_nothing(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide()), channel_to(provide(), name="other"))
    plant(store, FIRING)
    assert route_again(store, channels) == 2
    assert route_again(store, channels) == 0
    assert len(shown(store)) == 2


def test_two_workers_that_route_at_once_route_once(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide()))
    plant(store, FIRING)
    gate = threading.Barrier(2)
    made: list[int] = []

    def work() -> None:
        gate.wait(10)
        made.append(route_again(store, channels))

    _both(work)
    assert sorted(made) == [0, 1]


def test_a_transition_that_no_channel_wants_leaves_no_row(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide(), severity=Severity.CRITICAL))
    plant(store, FIRING)
    assert route_again(store, channels) == 0
    assert shown(store) == []


def test_no_transaction_is_open_while_a_message_is_on_its_way(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    """With one, SQLite's only writer would be taken for as long as a provider thinks."""
    provider = provide(Said(hangs=True))
    channels = channels_of(channel_to(provider, timeout_s=10.0))
    plant_and_route(store, channels)
    sender = threading.Thread(target=deliver_due, args=(store, channels, NOW, client))
    sender.start()
    provider.wait_for(1)
    assert route_again(store, channels) == 0
    assert only(store).attempts == 1
    provider.hang_up()
    sender.join(20)
    assert only(store).state == "waiting"


def test_a_500_is_tried_again_after_a_while_with_the_same_id_and_content(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide(Said(status=500, body=b"oops"))
    channels = channels_of(channel_to(provider))
    plant_and_route(store, channels)
    deliver_due(store, channels, NOW, client)
    waiting = only(store)
    assert (waiting.state, waiting.answer) == ("waiting", "HTTP 500: oops")
    assert NOW < waiting.next_at <= later(10)
    assert deliver_due(store, channels, NOW, client) == 0
    assert deliver_due(store, channels, later(30), client) == 1
    first, second = provider.got
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert _told(first.body) == _told(second.body)
    assert (only(store).state, only(store).attempts) == ("delivered", 2)


def test_retry_after_holds_the_whole_channel(store: Store, provide: Opened, client: httpx2.Client) -> None:
    provider = provide(Said(status=429, body=b"slow down", headers={"Retry-After": "120"}))
    channels = channels_of(channel_to(provider))
    plant_and_route(store, channels)
    other = a_transition(an_alert(id="a2"), id="x9")
    deliver_due(store, channels, NOW, client)
    with store.begin() as conn:
        plant_transition(conn, other)
        route(conn, other, channels, later(1))
    assert only_of(store, "x1").next_at >= later(120)
    assert deliver_due(store, channels, later(100), client) == 0
    assert deliver_due(store, channels, later(200), client) == 2
    assert {delivery.state for delivery in shown(store)} == {"delivered"}


def only_of(store: Store, transition: str) -> DeliveryView:
    return next(delivery for delivery in shown(store) if delivery.transition_id == transition)


def test_a_provider_cannot_silence_us_for_days(store: Store, provide: Opened, client: httpx2.Client) -> None:
    provider = provide(Said(status=429, headers={"Retry-After": "99999999"}))
    channels = channels_of(channel_to(provider))
    plant_and_route(store, channels)
    deliver_due(store, channels, NOW, client)
    assert only(store).next_at <= later(RETRY_AFTER_CAP_S + 60)


def test_a_permanent_failure_stops_and_is_shown(store: Store, provide: Opened, client: httpx2.Client) -> None:
    provider = provide(Said(status=400, body=b"invalid_payload"))
    channels = channels_of(channel_to(provider, kind=ChannelKind.SLACK, name="slack", secret=""))
    plant_and_route(store, channels)
    deliver_due(store, channels, NOW, client)
    assert deliver_due(store, channels, later(99999), client) == 0
    assert (only(store).state, only(store).answer) == ("failed", "HTTP 400: invalid_payload")
    with store.read() as conn:
        (view,) = view_channels(conn, channels)
    assert (view.failed, view.waiting, view.answer) == (1, 0, "HTTP 400: invalid_payload")
    assert "T0KEN" not in repr(view)


def test_a_hanging_provider_costs_one_time_out_and_is_tried_again(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide(Said(hangs=True))
    channels = channels_of(channel_to(provider, timeout_s=0.2))
    plant_and_route(store, channels)
    assert deliver_due(store, channels, NOW, client) == 1
    assert only(store).answer == "no answer within 0.2 s"
    assert deliver_due(store, channels, later(60), client) == 1
    assert only(store).state == "delivered"


def test_a_process_that_dies_after_sending_leaves_a_claim_that_runs_out(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider))
    plant_and_route(store, channels)
    dead = claim(store, NOW)
    assert dead is not None
    assert deliver_due(store, channels, later(LEASE_S - 1), client) == 0
    assert deliver_due(store, channels, later(LEASE_S), client) == 1
    assert provider.got[0].headers["webhook-id"] == dead.id
    assert (only(store).state, only(store).attempts) == ("delivered", 2)


def test_one_that_only_seemed_dead_cannot_undo_what_another_recorded(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide()))
    plant_and_route(store, channels)
    slow, quick = claim(store, NOW, "slow"), claim(store, later(LEASE_S), "quick")
    assert slow is not None
    assert quick is not None
    with store.begin() as conn:
        assert not messages.record_retry(conn, slow, "timed out", later(9999))
        assert not messages.record_failed(conn, slow, "timed out")
        assert messages.record_delivered(conn, slow, "it arrived after all", later(70))
        assert not messages.record_delivered(conn, quick, "again", later(71))
        assert not messages.record_retry(conn, quick, "again", later(9999))
    assert (only(store).state, only(store).answer) == ("delivered", "it arrived after all")


def test_dispatchers_that_race_send_and_record_each_message_once(store: Store, provide: Opened) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider))
    route_all(store, alerts_of_runs(store, 12), channels)
    gate = threading.Barrier(2)
    attempts: list[int] = []

    def work() -> None:
        with build_client() as ours:
            gate.wait(10)
            attempts.append(deliver_due(store, channels, NOW, ours))

    _both(work)
    assert sum(attempts) == 12 == len(provider.got)
    assert len({got.headers["webhook-id"] for got in provider.got}) == 12
    assert {(d.state, d.attempts) for d in shown(store)} == {("delivered", 1)}


def test_a_message_that_was_the_last_for_now_is_delivered_and_the_channel_rests(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    used_up = {"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "30.5"}
    provider = provide(*[Said(status=204, body=b"", headers=used_up)] * 2)
    channels = channels_of(channel_to(provider, kind=ChannelKind.DISCORD, secret=""))
    route_all(store, alerts_of_runs(store, 2), channels)
    assert [deliver_due(store, channels, later(seconds), client) for seconds in (0, 29, 45)] == [1, 0, 1]
    assert {(d.state, d.attempts) for d in shown(store)} == {("delivered", 1)}


def test_a_channels_gap_holds_for_all_processes_together(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider, gap_s=20.0))
    route_all(store, alerts_of_runs(store, 3), channels)
    sent = [deliver_due(store, channels, later(seconds), client) for seconds in (0, 1, 19, 21, 42)]
    assert sent == [1, 0, 0, 1, 1]


def test_a_clock_that_ran_ahead_for_a_moment_silences_no_channel(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    channel = channel_to(provider, gap_s=5.0, budget=1)
    with store.begin() as conn:
        turns.hold(conn, channel.name, later(86_400.0))
    plant_and_route(store, channels_of(channel))
    assert deliver_due(store, channels_of(channel), NOW, client) == 1
    with store.begin() as conn:
        conn.execute(update(sends).values(at=sends.c.at + 86_400_000_000))
        assert turns.spent(conn, channel.name, later(120.0)) == 0
        assert not turns.lock(conn, channel.name, later(1.0))


def test_a_message_that_is_tried_again_is_within_the_budget_too(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide(Said(status=500))
    channels = channels_of(channel_to(provider, budget=1))
    plant_and_route(store, channels)
    arrived = []
    for seconds in (0, 30, 59, 61):
        deliver_due(store, channels, later(seconds), client)
        arrived.append(len(provider.got))
    assert arrived == [1, 1, 1, 2]


def test_a_recovery_never_overtakes_the_news_that_an_alert_fires(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider))
    over, other = resolved(FIRING, at=later(5)), a_transition(an_alert(id="a2"), id="x9", at=later(6))
    plant(store, FIRING, over, other)
    route_all(store, [FIRING], channels)
    on_its_way = claim(store, later(4))
    assert on_its_way is not None
    route_all(store, [over, other], channels, later(10))
    assert deliver_due(store, channels, later(11), client) == 1
    assert only_of(store, "x9").state == "delivered"
    assert only_of(store, "x2").message_id == ""
    assert deliver_due(store, channels, later(11 + LEASE_S), client) == 2
    told = [json.loads(got.body)["transition"]["id"] for got in provider.got]
    assert told == ["x9", "x1", "x2"]


def test_one_channels_trouble_is_not_anothers(store: Store, provide: Opened, client: httpx2.Client) -> None:
    broken, sound = provide(Said(status=500)), provide()
    channels = channels_of(channel_to(broken), channel_to(sound, name="sound"))
    plant_and_route(store, channels)
    assert deliver_due(store, channels, NOW, client) == 2
    assert {d.channel: d.state for d in shown(store)} == {"pager": "waiting", "sound": "delivered"}


def test_a_message_is_given_up_after_its_last_attempt(store: Store, provide: Opened) -> None:
    channel = channel_to(provide())
    plant_and_route(store, channels_of(channel))
    now = NOW
    for _ in range(ATTEMPTS_LIMIT):
        taken = claim(store, now, channel=channel)
        assert taken is not None
        with store.begin() as conn:
            assert record(conn, channel, taken, Answer(verdict=Verdict.RETRY, words="HTTP 500"), now, 0.5)
        now = max(now, only(store).next_at)
    assert only(store).state == "failed"
    assert only(store).answer == f"given up after {ATTEMPTS_LIMIT} attempts: HTTP 500"
    assert claim(store, later(10**7)) is None


def test_a_message_that_ends_each_process_that_sends_it_is_given_up(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    channel = channel_to(provider)
    plant_and_route(store, channels_of(channel))
    for round in range(ATTEMPTS_LIMIT):
        assert claim(store, later(3600.0 * round), channel=channel)
    deliver_due(store, channels_of(channel), later(3600.0 * ATTEMPTS_LIMIT), client)
    found = only(store)
    assert (found.state, found.answer) == ("failed", "given up: 20 attempts ended without an answer")
    assert provider.got == []


def test_a_row_that_cannot_be_read_is_shown_and_holds_up_nobody(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    channels = channels_of(channel_to(provide()))
    plant_and_route(store, channels)
    with store.begin() as conn:
        conn.execute(update(transitions).values(body={"id": 7}))
    assert deliver_due(store, channels, NOW, client) == 0
    assert only(store).state == "failed"
    assert only(store).answer.startswith("unreadable: ")
    assert deliver_due(store, channels, later(9999), client) == 0


def test_other_entries_of_the_stores_meta_table_are_left_alone(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide(), gap_s=5.0))
    plant_and_route(store, channels)
    with store.read() as conn:
        epoch = store.epoch(conn)
    claim(store, NOW)
    with store.read() as conn:
        assert store.epoch(conn) == epoch
        keys = set(conn.scalars(select(meta.c.key)))
    assert "channel:pager" in keys


def test_a_test_message_repeats_the_providers_words_and_is_not_recorded(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    provider = provide(Said(), Said(status=403, body=b"action_prohibited"))
    channel = channel_to(provider)
    first, second = fire_test(channel, NOW, client=client), fire_test(channel, NOW)
    assert (first.delivered, first.answer) == (True, "HTTP 200: ok")
    assert (second.delivered, second.answer) == (False, "HTTP 403: action_prohibited")
    assert "test message" in json.loads(provider.got[0].body)["alert"]["summary"]
    assert shown(store) == []


def test_pending_is_told_to_nobody(store: Store, provide: Opened) -> None:
    pending = a_transition(before=AlertState.INACTIVE, after=AlertState.PENDING)
    plant(store, pending)
    with store.begin() as conn:
        assert route(conn, pending, channels_of(channel_to(provide())), NOW) == 0


def test_deliveries_are_paged_newest_first(store: Store, provide: Opened) -> None:
    channels = channels_of(channel_to(provide()))
    many = [a_transition(an_alert(id=f"a{i}"), id=f"x{i}", at=later(i)) for i in range(3)]
    plant(store, *many)
    with store.begin() as conn:
        for transition in many:
            route(conn, transition, channels, NOW)
    with store.read() as conn:
        first, after = deliveries.page(conn, run="r1", limit=2)
        second, end = deliveries.page(conn, run="r1", after=after, limit=2)
        nothing, _ = deliveries.page(conn, run="r2")
    assert [d.transition_id for d in (*first, *second)] == ["x2", "x1", "x0"]
    assert (end, nothing) == (None, ())


@given(attempts=st.integers(1, 10_000), jitter=st.floats(0.0, 1.0, exclude_max=True))
def test_back_off_doubles_to_its_cap_and_is_spread_over_the_upper_half(attempts: int, jitter: float) -> None:
    wait_s = backoff_s(attempts, jitter)
    whole = min(2.0 ** min(attempts, 100), BACKOFF_CAP_S)
    assert whole / 2 <= wait_s <= whole
    assert backoff_s(attempts + 1, jitter) >= wait_s


def test_a_long_list_on_one_channel_is_cut_into_bursts(
    store: Store, provide: Opened, client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "BURST_LIMIT", 2)
    channels = channels_of(channel_to(provide()))
    route_all(store, alerts_of_runs(store, 3), channels)
    assert [deliver_due(store, channels, NOW, client) for _ in range(3)] == [2, 1, 0]


def _told(body: bytes) -> dict[str, object]:
    """All but the links, each of which acts once and has its own secret."""
    return {key: value for key, value in json.loads(body).items() if key in ("alert", "transition", "run")}


def _both(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_a_channel_with_matchers_hears_only_of_what_they_name(store: Store, provide: Opened) -> None:
    here, there = Matcher.read("project=demo"), Matcher.read("project!=demo")
    rule = Matcher.read("rule=kl_*")
    channels = channels_of(
        channel_to(provide(), name="demo", matchers=(here, rule)),
        channel_to(provide(), name="other", matchers=(there, rule)),
        channel_to(provide(), name="all"),
    )
    plant_and_route(store, channels)
    assert sorted(delivery.channel for delivery in shown(store)) == ["all", "demo"]


def test_in_quiet_hours_a_warning_waits_and_a_critical_alert_does_not(
    store: Store, provide: Opened, client: httpx2.Client
) -> None:
    quiet = QuietHours(start=time(10), end=time(13), zone=ZoneInfo("UTC"))
    provider = provide()
    channels = channels_of(channel_to(provider, quiet=quiet))
    plant_and_route(store, channels)
    urgent = a_transition(an_alert(id="a2", severity=Severity.CRITICAL), id="x9")
    with store.begin() as conn:
        plant_transition(conn, urgent)
        route(conn, urgent, channels, NOW)
    assert deliver_due(store, channels, NOW, client) == 1
    assert json.loads(provider.got[0].body)["alert"]["severity"] == "critical"
    assert deliver_due(store, channels, later(3599), client) == 0
    assert deliver_due(store, channels, later(3601), client) == 1


def test_a_channel_is_told_in_its_own_language(store: Store, provide: Opened, client: httpx2.Client) -> None:
    provider = provide()
    channels = channels_of(channel_to(provider, language=Language.CHINESE))
    plant_and_route(store, channels)
    deliver_due(store, channels, NOW, client)
    text = json.loads(provider.got[0].body)["text"]
    assert text.startswith("警告：kl_pull_dominates，训练 tiny run (r1)\n")
    assert "处理办法: Lower the KL coefficient." in text
