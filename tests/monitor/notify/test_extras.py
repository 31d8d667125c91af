"""What is read for a message, on both databases: as it was at the change's step, and nothing where nothing is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from sqlalchemy import Connection, insert, select

from rlvitals.contract.alert import Alert, AlertState, Transition
from rlvitals.contract.command import CommandState
from rlvitals_monitor.notify.channel import Channel, ChannelKind, Channels
from rlvitals_monitor.notify.dispatch import deliver_due, route
from rlvitals_monitor.notify.extras import gather
from rlvitals_monitor.notify.notification import Act, Extras, Notification, RunCount, tell_one
from rlvitals_monitor.store import commands, links
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import split, to_micros
from rlvitals_monitor.store.runs import read_info
from rlvitals_monitor.store.tables import attempts, points, series, steps, texts
from tests.monitor.notify.conftest import channel_to
from tests.monitor.notify.provider import Provider, Said
from tests.monitor.planted import NOW, a_command, a_transition, an_alert, later, plant, plant_transition, resolved

CHANNEL = Channel(name="team", kind=ChannelKind.WEBHOOK, url="https://pager.example/hook")
PUBLIC = "https://vitals.example"
METRIC = "kl.pull_ratio"


def attempt_of(conn: Connection) -> int:
    return int(conn.scalar(select(attempts.c.number)) or 0)


def plant_points(conn: Connection, values: Mapping[int, float | None], metric: str = METRIC) -> None:
    """Each step with its value; None is a step without one."""
    attempt = attempt_of(conn)
    conn.execute(insert(series).values(number=1, attempt=attempt, metric=metric, missing_reason=""))
    for step, value in values.items():
        at = to_micros(later(step))
        conn.execute(insert(steps).values(attempt=attempt, step=step, time=at, received=at))
        if value is not None:
            number, kind = split(value)
            conn.execute(insert(points).values(series=1, step=step, value=number, kind=kind))


def plant_text(conn: Connection, step: int, completion: str, **given: object) -> None:
    fields = {"sample": 0, "prompt": "", "token_ids": b"", "why": "reservoir", **given}
    conn.execute(insert(texts).values(attempt=attempt_of(conn), step=step, completion=completion, **fields))


def gathered(
    store: Store, transition: Transition | None = None, channel: Channel = CHANNEL, public_url: str = PUBLIC
) -> Extras:
    with store.begin() as conn:
        return gather(conn, channel, told(conn, transition or a_transition()), public_url, NOW)


def told(conn: Connection, transition: Transition) -> Notification:
    return tell_one(transition, read_info(conn, "r1"), id="m1")


def test_the_trend_ends_at_the_changes_step_and_tells_the_four_kinds_apart(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_points(conn, {115: 1.0, 116: math.nan, 117: math.inf, 118: -math.inf, 119: None, 120: 3.5, 121: 9.0})
    trend = gathered(store).trend
    assert trend is not None
    assert (trend.metric, trend.steps, trend.threshold) == (METRIC, (115, 116, 117, 118, 119, 120), 1.0)
    assert [repr(value) for value in trend.values] == ["1.0", "nan", "inf", "-inf", "None", "3.5"]


def test_a_metric_that_is_measured_now_and_then_is_not_missing_between(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_points(conn, {step: float(step) if step % 10 == 0 else None for step in range(60, 121)})
    trend = gathered(store).trend
    assert trend is not None
    assert trend.steps == (60, 70, 80, 90, 100, 110, 120)


@pytest.mark.parametrize("given", [{"metric": ""}, {"metric": "never.seen"}, {"attempt": "gone"}])
def test_where_nothing_was_measured_there_is_no_trend(store: Store, given: dict[str, str]) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_points(conn, {120: 1.0})
    assert gathered(store, a_transition(an_alert(**given))).trend is None


def test_the_worst_sample_is_the_one_with_broken_bytes_of_the_last_step_that_has_any(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_text(conn, 100, "old", invalid_utf8=9)
        plant_text(conn, 119, "fine", reward=-5.0, reward_kind=0)
        plant_text(conn, 119, "kept as a worst one", why="worst_length", sample=1)
        plant_text(conn, 119, "bad \ufffd", invalid_utf8=2, sample=2)
        plant_text(conn, 125, "of a later step", invalid_utf8=99)
    sample = gathered(store).sample
    assert sample is not None
    assert (sample.step, sample.completion) == (119, "bad \ufffd")
    assert gathered(store, channel=replace(CHANNEL, samples=False)).sample is None


@pytest.mark.parametrize(
    ("rewards", "worst"), [([0.5, 0.1, None], 1), ([0.5, math.nan, 0.1], 1), ([None, math.inf, -math.inf], 2)]
)
def test_a_nan_reward_is_the_worst_and_a_missing_one_says_nothing(
    store: Store, rewards: list[float | None], worst: int
) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        for i, reward in enumerate(rewards):
            value, kind = (None, None) if reward is None else split(reward)
            plant_text(conn, 120, f"text {i}", sample=i, reward=value, reward_kind=kind)
    sample = gathered(store).sample
    assert sample is not None
    assert sample.completion == f"text {worst}"


def fired(rule: str, id: str, step: int, **given: object) -> Alert:
    return an_alert(id=id, rule=rule, since_step=step, fired_step=step, fired_at=NOW, **given)


def test_the_diagnosis_is_of_the_alerts_up_to_the_changes_step_and_of_the_runs_trainer(store: Store) -> None:
    cause = a_transition(fired("kl_grad_one_id", "a1", 120), id="x1")
    plant(store, cause, a_transition(fired("forced_loss_tokens", "a2", 121), id="x2", step=121))
    found = gathered(store, cause).diagnosis
    assert found is not None
    assert found.headline.startswith("One token id owns the KL gradient")
    assert found.change == (("trl", "the tool mask of the environment must be 0 on that token"),)


def test_a_rule_of_ones_own_has_no_diagnosis(store: Store) -> None:
    plant(store, own := a_transition(fired("my_own_rule", "a1", 120)))
    assert gathered(store, own).diagnosis is None


def test_the_links_act_on_this_alert_and_are_new_at_each_attempt(store: Store) -> None:
    plant(store, a_transition())
    first, again = gathered(store).actions, gathered(store).actions
    assert [action.act for action in first] == [Act.ACKNOWLEDGE, Act.SILENCE]
    assert not {action.url for action in first} & {action.url for action in again}
    with store.read() as conn:
        for action in first:
            link = links.find(conn, urlsplit(action.url).path.removeprefix(links.PATH))
            assert link is not None
            assert (link.subject, link.content) == ("a1", links.fingerprint(an_alert()))
            assert link.act.value == action.act.value


def test_a_command_that_waits_for_approval_can_be_approved_and_denied_from_the_message(store: Store) -> None:
    plant(store, a_transition())
    view = a_command(alert_id="a1")
    with store.begin() as conn:
        commands.add(conn, view)
        commands.add(conn, replace(view, id="c2", alert_id="another"))
        commands.add(conn, replace(view, id="c3", state=CommandState.APPLIED))
    told = gathered(store).actions[2:]
    assert [(action.act, action.about) for action in told] == [
        (Act.APPROVE, "set_kl_coef 0.05"),
        (Act.DENY, "set_kl_coef 0.05"),
    ]


def test_without_an_own_address_there_are_no_links(store: Store) -> None:
    plant(store, a_transition())
    assert gathered(store, public_url="").actions == ()


def test_a_recovery_shows_the_trend_and_nothing_to_act_on(store: Store) -> None:
    over = resolved(a_transition())
    plant(store, a_transition(), over)
    with store.begin() as conn:
        plant_points(conn, {149: 3.0, 150: 0.2})
        plant_text(conn, 150, "fine")
    found = gathered(store, over)
    assert found.trend is not None
    assert found.trend.steps == (149, 150)
    assert (found.sample, found.diagnosis, found.actions) == (None, None, ())


def test_a_digest_and_a_run_that_is_gone_show_nothing_more(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        note = told(conn, a_transition())
        count = RunCount(run=note.lead.run, firing=1, resolved=0, severity=note.lead.transition.alert.severity)
        digest = replace(note, run=None, counts=(count,))
        assert gather(conn, CHANNEL, digest, PUBLIC, NOW) == Extras()
        lost = replace(note.lead, transition=a_transition(an_alert(run="gone", state=AlertState.FIRING)))
        assert gather(conn, CHANNEL, replace(note, items=(lost,)), "", NOW) == Extras()


def test_a_channel_that_wants_no_picture_gets_the_line_of_signs_alone(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_points(conn, {120: 1.0})
        plant_transition(conn, resolved(a_transition()))
    found = gathered(store, channel=replace(CHANNEL, picture=False))
    assert found.trend is not None
    assert found.draws is False


def test_a_run_that_stopped_talking_shows_no_sample(store: Store) -> None:
    plant(store, lost := a_transition(an_alert(rule="rlvitals/lost", metric="run.silence_s")))
    with store.begin() as conn:
        plant_text(conn, 120, "fine")
    assert gathered(store, lost).sample is None


def test_a_channel_gets_all_of_it_by_the_way_that_alerts_go(store: Store) -> None:
    plant(store, a_transition())
    with store.begin() as conn:
        plant_points(conn, {119: math.nan, 120: 3.5})
        plant_text(conn, 120, "1 + 1 = 3")
    with Provider(Said(body=b"ok")).running() as provider:
        channel = channel_to(provider)
        channels = Channels(items=(channel,), public_url=PUBLIC)
        with store.begin() as conn:
            route(conn, a_transition(), channels, NOW)
        assert deliver_due(store, channels, NOW) == 1
        (got,) = provider.got
    told = json.loads(got.body)
    assert told["trend"] == "×▄"
    assert told["sample"]["completion"] == "1 + 1 = 3"
    assert [link["text"] for link in told["links"]] == [
        "Open the run at step 120",
        "Acknowledge",
        "Silence for 1 h",
    ]
