"""Runs that fall silent together: said once, with the service's own network first, and never without need."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from rlvitals.contract.report import Phase
from rlvitals_monitor.alerts.shared_silence import SharedSilence, shared_silence
from rlvitals_monitor.alerts.vigil import Vigil
from rlvitals_monitor.notify.attempt import take
from rlvitals_monitor.notify.channel_file import load_channels
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.notice import read_notice
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.tables import deliveries
from rlvitals_monitor.worker import Worker
from tests.monitor.alerts.test_vigil import MINUTE, speak
from tests.monitor.batches import NOW, after

OWN_NETWORK = "it may be the service's own network"


def ago(*seconds: float) -> list[datetime]:
    return [NOW - timedelta(seconds=one) for one in seconds]


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (ago(), 0),
        (ago(600), 0),
        (ago(600, 610), 0),
        (ago(600, 610, 615), 3),
        (ago(600, 610, 615, 30), 0),  # one is heard: the service is not cut off
        (ago(600, 610, 615, -5), 0),  # a clock that is ahead
        (ago(600, 610, 9000), 0),  # one fell silent long before
        (ago(600, 610, 620, 9000), 3),
        (ago(70, 80, 90), 3),
        (ago(50, 55, 59), 0),  # no longer than usual
    ],
)
def test_many_that_fell_silent_at_once_share_it_unless_one_is_heard(words: Sequence[datetime], runs: int) -> None:
    found = shared_silence(words, NOW)
    assert (0 if found is None else found.runs) == runs


def test_it_is_about_those_alone_that_fell_silent_then() -> None:
    found = shared_silence(ago(600, 610, 620, 9000), NOW)
    assert found == SharedSilence(runs=3, first=ago(620)[0], last=ago(600)[0])
    assert found.advice.startswith("3 runs fell silent within 20 s and none is heard")
    assert not found.holds(ago(9000)[0])


def cut_off(store: Store, *runs: str) -> None:
    """Heard between their steps, twenty seconds apart, and then never again."""
    for place, run in enumerate(runs):
        speak(store, 0, steps=1, run=run)
        speak(store, 100 + 20.0 * place, run=run)


def test_runs_that_are_lost_at_once_are_told_of_in_one_message_that_names_the_services_network(
    store: Store,
) -> None:
    channels = load_channels(None, webhook_url="https://example.org/hook")
    worker, (channel,) = Worker(store, rules=(), channels=channels), channels
    cut_off(store, "a", "b", "c")
    for at in range(120, int(13 * MINUTE), 50):
        worker.tick(after(at))
    now = after(13 * MINUTE)
    with store.read() as conn:
        assert len(conn.execute(select(deliveries.c.id)).all()) == 3
    taken = take(store, channel, "me", now)
    assert taken is not None
    with store.begin() as conn:
        told = read_notice(conn, taken, channel, "", now)
    assert told is not None
    assert told.run is None
    message = compose(told)
    assert OWN_NETWORK in message.summary
    assert [section.label for section in message.sections] == ["a", "b", "c"]
    assert take(store, channel, "me", now) is None, "one message, and no more"


def test_one_that_is_heard_keeps_the_others_alerts_as_they_always_were(store: Store) -> None:
    vigil = Vigil()
    cut_off(store, "a", "b", "c")
    found = []
    for at in range(150, int(13 * MINUTE), 50):
        speak(store, at, run="d", steps=at)
        found += vigil.look(store, after(at))
    assert {t.alert.run for t in found} == {"a", "b", "c"}
    assert not any(OWN_NETWORK in t.alert.advice for t in found)


def test_runs_that_are_over_share_nothing(store: Store) -> None:
    vigil = Vigil()
    cut_off(store, "a", "b", "c")
    speak(store, 160, run="a", phase=Phase.FINISHED)
    found = [t for at in range(170, int(13 * MINUTE), 50) for t in vigil.look(store, after(at))]
    assert {t.alert.run for t in found} == {"b", "c"}
    assert not any(OWN_NETWORK in t.alert.advice for t in found)
