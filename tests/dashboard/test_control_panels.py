"""The panels of control and channels: what stands in them, from contract types alone."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest

from rlvitals.contract.alert import Severity
from rlvitals.contract.channelbook import ChannelBookView
from rlvitals.contract.command import CommandKind, CommandState, Knob
from rlvitals.contract.steering import EffectView, SignalEffect
from rlvitals.contract.view import (
    AuditView,
    ChannelView,
    CommandView,
    DeliveryView,
    SilencePurpose,
    SilenceState,
    SilenceView,
    Voice,
)
from rlvitals_dashboard import channel_panel, command_panel, effect_panel, silence_panel, words
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.asking import parts_of, subject_of
from rlvitals_dashboard.audit_panel import audit_table
from rlvitals_dashboard.course import course, ranks_of
from rlvitals_dashboard.deeds import DEEDS
from rlvitals_monitor.notify.channel_body import BodyReader
from rlvitals_monitor.notify.secret_source import SecretSource
from tests.dashboard.fake import RUN, FakeService
from tests.dashboard.synthetic import lively
from tests.dashboard.test_components import said

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
EVIL = "<script>x</script>\u202e"
SEEN = "<script>x</script>[U+202E]"


@pytest.fixture(scope="module")
def fake() -> FakeService:
    return lively()


def a_command(**given: Any) -> CommandView:
    base: dict[str, Any] = {
        "id": "c-1",
        "run": RUN,
        "kind": CommandKind.SET_KL_COEF,
        "state": CommandState.PROPOSED,
        "created_at": NOW,
        "expires_at": NOW,
        "argument": 0.2,
        "who": "rule:kl_pull_dominates",
    }
    return CommandView(**base | given)


def ada(named: bool = True) -> Voice:
    return Voice(who="ada" if named else "link", named=named, at=NOW)


# a command


def test_a_decision_of_two_says_who_has_approved_and_that_a_link_does_not_count(fake: FakeService) -> None:
    waiting = a_command(persons=2, voices=(ada(), ada(named=False)))
    told = said(command_panel.decision(waiting, fake.runs[RUN]))
    assert "Approved by ada. 1 of 2 different people have approved it." in told
    assert "1 voice without a name does not count." in told
    assert "different people" not in said(command_panel.decision(a_command(), fake.runs[RUN]))


@pytest.mark.parametrize(
    ("state", "passed"),
    [
        (CommandState.PROPOSED, [True, False, False, False]),
        (CommandState.PENDING, [True, True, False, False]),
        (CommandState.DELIVERED, [True, True, True, False]),
        (CommandState.APPLIED, [True, True, True, True]),
    ],
)
def test_the_way_of_a_command_is_told_station_by_station(state: CommandState, passed: list[bool]) -> None:
    who = "" if state is CommandState.PROPOSED else "ada"
    stations = course(a_command(state=state, decided_by=who, step=96), 8)
    assert [station.passed for station in stations] == passed
    assert "all 8 ranks" in stations[-1].title


@pytest.mark.parametrize(
    ("state", "words", "ill"),
    [
        (CommandState.REFUSED, "Refused", True),
        (CommandState.DENIED, "Denied", False),
        (CommandState.EXPIRED, "Expired", False),
        (CommandState.OBSERVED, "nothing was done", False),
    ],
)
def test_a_way_that_ends_early_says_how(state: CommandState, words: str, ill: bool) -> None:
    end = course(a_command(state=state), None)[-1]
    assert words in end.title
    assert end.ill is ill


def test_a_policys_own_change_was_approved_by_nobody() -> None:
    stations = course(a_command(state=CommandState.APPLIED, who="policy:guarded", step=3), 1)
    assert [s.title for s in stations] == [
        "Proposed",
        "Handed to the trainer with a receipt",
        "Applied at the boundary of step 3, on its one rank together",
    ]


@pytest.mark.parametrize("told", [None, "8", True, 0, -1, math.nan])
def test_what_is_no_number_of_ranks_is_no_claim_about_them(told: Any) -> None:
    assert ranks_of({"world_size": told}) is None
    assert ranks_of({"world_size": 8}) == 8


def test_a_knob_of_the_user_is_offered_with_its_bounds_and_its_name_is_text(fake: FakeService) -> None:
    knob = Knob(low=0.0, high=2.0, value=1.0, max_change=0.5)
    run = replace(fake.runs[RUN], knobs={EVIL: knob}, capabilities={"pause": "", "stop": "no"})
    told = said(command_panel.own_commands(run))
    assert f"Set {SEEN}" in told
    assert "yours 1, allowed 0 to 2, by at most 0.5 at once" in told
    assert "Stop trainingno" in told


@pytest.mark.parametrize("parts", [("own", "a b:c%", "ä/\u202e"), ("", ""), ("x",)])
def test_the_subject_of_a_deed_has_no_space_and_gives_its_parts_back(parts: tuple[str, ...]) -> None:
    assert " " not in subject_of(*parts)
    assert tuple(parts_of(subject_of(*parts))) == parts


# an effect


def an_effect(*values: float, **given: Any) -> SignalEffect:
    base: dict[str, Any] = {"metric": "kl.k3", "turn": "better", "reason": "", "before": 1.0, "after": 0.5}
    return SignalEffect(**base | {"step": tuple(range(len(values))), "value": values} | given)


def test_nan_both_infinities_and_missing_around_a_command_are_four_different_words() -> None:
    signal = an_effect(1.0, math.nan, math.inf, -math.inf, 0.5, missing=True)
    told = effect_panel.odd_values(signal)
    assert told == "NaN at step 1; +Inf at step 2; −Inf at step 3; too much of it is missing"
    picture = effect_panel.picture_of(signal, 2)
    assert picture["data"][0]["y"] == [1.0, None, None, None, 0.5]


def test_an_effect_without_any_number_has_no_picture_and_no_mean() -> None:
    signal = an_effect(math.nan, before=None, after=None, turn="not judged", reason="no finite value")
    view = EffectView(command_id="c", run=RUN, verdict="not judged", reason="NaN", signals=(signal,))
    told = said(effect_panel.effect_panel(view))
    assert "Not judged" in told
    assert "missing → missing" in told
    assert "no finite value" in told


def test_a_verdict_that_this_page_does_not_know_is_no_verdict() -> None:
    view = EffectView(command_id="c", run=RUN, verdict="marvellous", reason=EVIL)
    told = said(effect_panel.effect_panel(view))
    assert "Not judged" in told
    assert SEEN in told


# silences, audit, channels


def a_silence(**given: Any) -> SilenceView:
    base: dict[str, Any] = {
        "id": "s",
        "purpose": SilencePurpose.SILENCE,
        "state": SilenceState.ACTIVE,
        "match": (f"rule={EVIL}",),
        "starts_at": NOW,
        "ends_at": NOW + timedelta(hours=2),
        "created_at": NOW,
    }
    return SilenceView(**base | given)


def test_silences_say_what_until_when_and_by_whom_and_only_the_live_ones_can_be_ended() -> None:
    told = said(silence_panel.silence_list([a_silence(who=EVIL, why="lunch")]))
    assert f"rule={SEEN}" in told
    assert "lunch" in told
    assert "Yes, end it" in told
    over = said(silence_panel.silence_list([a_silence(state=SilenceState.ENDED, ended_by="ada")]))
    assert "No alert is silenced." in over
    assert "ended by ada" in over
    assert "Yes, end it" not in over


def test_a_window_that_comes_again_says_when_next() -> None:
    again = a_silence(state=SilenceState.RESTING, cron="0 22 * * 6", zone="UTC", lasts_s=5400.0, next_at=NOW)
    assert "0 22 * * 6 for 1 h 30 min, UTC; next 2026-03-01" in said(silence_panel.silence_list([again]))


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 s"),
        (90.0, "90 s"),
        (5400.0, "1 h 30 min"),
        (86400.0, "1 day"),
        (180000.0, "2 days 2 h"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "−Inf"),
    ],
)
def test_a_duration_is_told_in_its_two_largest_units(seconds: float, told: str) -> None:
    assert words.duration(seconds) == told


def test_lines_of_the_audit_are_text() -> None:
    line = AuditView(at=NOW, run=EVIL, command_id="", who=EVIL, what=EVIL, detail=EVIL)
    assert said(audit_table([line], "/ui/")).count(SEEN) == 4
    assert "No line fits." in said(audit_table([], "/ui/"))


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        ({"failed": 1, "waiting": 3}, "Messages were given up"),
        ({"waiting": 1, "delivered": 9}, "Messages wait"),
        ({"delivered": 1}, "Delivers"),
        ({}, "Nothing sent yet"),
    ],
)
def test_a_channel_shows_the_worst_that_is_known_of_it(counts: dict[str, int], word: str) -> None:
    channel = ChannelView(
        name="team", kind="slack", host="h", severity=Severity.WARNING, send_resolved=True, signed=False, **counts
    )
    assert channel_panel.standing(channel).word == word
    assert word in said(channel_panel.channel_cards([channel]))


@pytest.mark.parametrize(
    ("kind", "typed"),
    [
        (
            "telegram",
            {
                "url": "https://api.telegram.org/bot123:AbC/sendMessage",
                "chat_id": "-1001234567890",
                "message_thread_id": " 42 ",
            },
        ),
        (
            "email",
            {
                "url": "smtps://mail.example:465",
                "secret": "hush",
                "from": "RL Vitals <vitals@mail.example>",
                "to": "team@mail.example, ann@mail.example",
                "user": "vitals",
            },
        ),
    ],
)
def test_telegram_and_mail_are_filled_in_by_the_form_and_the_service_takes_what_it_sends(
    kind: str, typed: dict[str, str]
) -> None:
    class Recording:
        async def make_channel(self, body: dict[str, Any]) -> None:
            made.update(body)

    made: dict[str, Any] = {}
    other = {name: "left over" for names in channel_panel.OPTIONS.values() for name in names}
    said_by_hand = {**other, "name": "mine", "kind": kind, **typed}
    asyncio.run(DEEDS["make-channel"](cast(Api, Recording()), "", said_by_hand))
    channel = BodyReader(source=SecretSource()).read(made.pop("name"), made)
    options = channel_panel.OPTIONS[kind]
    assert channel.options == {name: typed[name].strip() for name in options}
    form = str(channel_panel.new_channel())
    assert all(f"'name': '{name}'" in form for name in said_by_hand), "each can be typed"


def test_only_a_channel_that_the_api_made_can_be_removed() -> None:
    channel = ChannelView(
        name="team", kind="slack", host="h", severity=Severity.INFO, send_resolved=False, signed=True, answer=EVIL
    )
    assert "Yes, remove it" not in said(channel_panel.channel_cards([channel]))
    assert "Yes, remove it" in said(channel_panel.channel_cards([replace(channel, made=True)]))
    assert SEEN in said(channel_panel.channel_cards([channel]))


def test_a_message_in_a_state_of_tomorrow_is_shown_by_its_name() -> None:
    delivery = DeliveryView(id="d", transition_id="x", channel="c", state="pondered", attempts=0, next_at=NOW)
    assert "pondered" in said(channel_panel.delivery_list([delivery], "/ui/"))
    dropped = replace(delivery, state="dropped", answer="resolved before it was told", purpose="reminder")
    told = said(channel_panel.delivery_list([dropped], "/ui/"))
    assert "Left out" in told
    assert "reminder" in told


def test_a_delivery_says_which_alert_of_which_run_it_is_about() -> None:
    delivery = DeliveryView(
        id="d",
        transition_id="x",
        channel="c",
        state="silenced",
        attempts=0,
        next_at=NOW,
        run=EVIL,
        rule="nonfinite",
    )
    told = said(channel_panel.delivery_list([replace(delivery, change="firing")], "/ui/"))
    assert "nonfinite fires" in told
    assert "Silenced" in told
    assert SEEN in told
    assert "nonfinite is over" in said(channel_panel.delivery_list([replace(delivery, change="resolved")], "/ui/"))


def test_what_waits_says_from_when_on_it_may_go() -> None:
    delivery = DeliveryView(id="d", transition_id="x", channel="c", state="waiting", attempts=0, next_at=NOW)
    assert "ready " in said(channel_panel.delivery_list([delivery], "/ui/"))


def test_problems_that_the_banner_has_room_for_are_not_told_twice() -> None:
    book = ChannelBookView(channels=1, loaded_at=NOW, problems=tuple(f"f:{n}: bad" for n in range(7)))
    told = said(channel_panel.problem_list(book))
    assert "f:4" not in told
    assert "f:6: bad" in told
    assert channel_panel.problem_list(replace(book, problems=("f:1: bad",))) is None
