"""What people are told, and what hostile text cannot make of it."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvitals.contract.alert import Proposal, Severity
from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import language
from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.message import Section, Tone, as_text, link_to
from rlvitals_monitor.notify.notification import Extras, Notification, Purpose, RunCount, Sample, tell_one
from rlvitals_monitor.notify.plain_text import ELLIPSIS, clip, number, plain, run_name, spelt
from rlvitals_monitor.notify.trial import make_trial
from tests.monitor.notify.told import a_digest, a_group
from tests.monitor.planted import NOW, a_transition, an_alert, later, resolved

RUN = RunInfo(id="r1", name="tiny run", project="demo")


def note(**alert: object) -> Notification:
    transition = a_transition(an_alert(**alert))
    return tell_one(id="m1", transition=transition, run=RUN, link=link_to("http://me:1/", transition.alert, 120))


def test_a_message_says_what_where_since_when_how_far_and_what_to_do() -> None:
    assert as_text(compose(note())) == "\n".join(
        [
            "WARNING: kl_pull_dominates on tiny run (r1)",
            "The KL pull is stronger than the policy pull.",
            "Run: tiny run (r1)",
            "Project: demo",
            "Since step: 117",
            "Value of kl.pull_ratio: 3.5 (threshold 1)",
            "Proposed: set_kl_coef 0.05",
            "What to do: Lower the KL coefficient.",
            "Open the run at step 120: http://me:1/ui/run/r1?attempt=t1&from=20&to=220",
        ]
    )


def test_a_recovery_says_at_which_step_and_gives_no_advice() -> None:
    message = compose(tell_one(id="m2", transition=resolved(a_transition()), run=RUN))
    assert message.title == "RESOLVED: kl_pull_dominates on tiny run (r1)"
    assert ("Resolved at step", "150") in message.facts
    assert dict(message.facts)["Lasted"] == "0 s, 33 steps"
    assert message.sections == ()
    assert message.links == ()


def test_nan_both_infinities_and_missing_are_four_different_things() -> None:
    told = {
        dict(compose(note(value=value)).facts)["Value of kl.pull_ratio"]
        for value in (math.nan, math.inf, -math.inf, None)
    }
    assert told == {
        "NaN (threshold 1)",
        "+Inf (threshold 1)",
        "-Inf (threshold 1)",
        "missing (threshold 1)",
    }


def test_a_proposed_argument_that_is_no_number_is_shown_as_what_it_is() -> None:
    proposal = Proposal(kind=CommandKind.SET_KL_COEF, argument=math.nan)
    assert dict(compose(note(proposal=proposal)).facts)["Proposed"] == "set_kl_coef NaN"


def test_an_alert_without_threshold_or_metric_still_says_its_value() -> None:
    assert dict(compose(note(metric="", threshold=None)).facts)["Value"] == "3.5"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("line\nbreak\r\n\ttab", "line break tab"),
        ("bell\a null\0 escape\x1b[31m", "bell null escape [31m"),
        ("\u202egnp.exe", "gnp.exe"),
        ("half \ud800 a pair", "half \ufffd a pair"),
        ("see http://evil.example/x", "see http:\u200b//evil.example/x"),
        ("ping @channel", "ping @\u200bchannel"),
        ("\u2028para\u2029graph", "para graph"),
        ("日本語 ok 🙂", "日本語 ok 🙂"),
    ],
)
def test_plain_text_cannot_pose_as_something_else(text: str, shown: str) -> None:
    assert plain(text, 100) == shown


def test_a_huge_name_costs_no_more_than_its_limit() -> None:
    assert len(plain("x" * 1_000_000, 80)) == 80


ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@given(text=st.text(max_size=200), characters=st.integers(1, 60), octets=st.integers(3, 120))
def test_a_clipped_text_is_within_both_limits_and_cut_between_characters(
    text: str, characters: int, octets: int
) -> None:
    clipped = clip(text, characters=characters, octets=octets, escape=lambda c: ESCAPES.get(c, c))
    assert len(clipped) <= characters
    assert len(clipped.encode()) <= octets
    whole = "".join(ESCAPES.get(c, c) for c in text)
    if clipped != whole:
        assert clipped.endswith(ELLIPSIS)
        kept = clipped[: -len(ELLIPSIS)]
        starts = {"".join(ESCAPES.get(c, c) for c in text[:n]) for n in range(len(text) + 1)}
        assert kept in starts


def test_a_run_without_a_name_of_its_own_is_called_by_its_id() -> None:
    assert run_name(RunInfo(id="r1")) == "r1"
    assert run_name(RunInfo(id="r1", name="r1")) == "r1"


def test_a_link_stays_one_link_whatever_the_ids_hold() -> None:
    alert = an_alert(run="a b/../?x=1", attempt="&from=9")
    assert link_to("https://me", alert, 5) == (
        "https://me/ui/run/a%20b%2F..%2F%3Fx%3D1?attempt=%26from%3D9&from=0&to=105"
    )
    assert link_to("", alert, 5) == ""


@given(st.floats())
def test_every_finite_number_is_shown_in_few_characters(value: float) -> None:
    assert len(number(value)) <= 13


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (math.nan, "NaN（阈值 1）"),
        (math.inf, "+Inf（阈值 1）"),
        (-math.inf, "-Inf（阈值 1）"),
        (None, "缺失（阈值 1）"),
    ],
)
def test_chinese_tells_the_four_kinds_of_no_number_apart(value: float | None, said: str) -> None:
    note = tell_one(
        id="m1", transition=a_transition(an_alert(value=value)), run=RunInfo(id="r1"), language=Language.CHINESE
    )
    assert ("kl.pull_ratio 的数值", said) in compose(note).facts


def test_braces_in_a_name_are_no_template() -> None:
    note = tell_one(id="m1", transition=a_transition(), run=RunInfo(id="r1", name="{state} {0.__class__} %s"))
    assert "{state} {0.__class__} %s (r1)" in compose(note).title


def test_every_phrase_keeps_its_places_in_chinese() -> None:
    for english, chinese in language._CHINESE.items():
        assert sorted(re.findall(r"\{\w+\}", english)) == sorted(re.findall(r"\{\w+\}", chinese))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("fine", "fine"),
        ("bad \udcff\udc80 bytes", "bad \\xff\\x80 bytes"),
        ("stored \\udcff bytes", "stored \\xff bytes"),
        ("lost \ufffd bytes", "lost \ufffd bytes"),
        ("half \ud800 a pair", "half \\ud800 a pair"),
        ("two\nlines\tand a tab", "two\\nlines\\x09and a tab"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("\u202egnp.exe\u200b", "\\u202egnp.exe\\u200b"),
        ("@all https://evil.example", "@\u200ball https:\u200b//evil.example"),
        ("🙂 好 é", "🙂 好 é"),
        ("", ""),
    ],
)
def test_a_completion_is_spelt_so_that_nothing_is_hidden_and_nothing_acts(text: str, shown: str) -> None:
    assert spelt(text, 100) == shown


def test_a_long_completion_is_shown_around_its_first_bad_byte() -> None:
    shown = spelt("a" * 1_000_000 + "\udcff" + "b" * 1_000_000, 60)
    assert len(shown) <= 60
    assert "a\\xffb" in shown
    assert shown.startswith(ELLIPSIS)


@given(st.text(alphabet=st.characters(codec=None), max_size=300), st.integers(1, 80))
def test_no_completion_leaves_its_limit_or_holds_what_cannot_be_sent(text: str, limit: int) -> None:
    shown = spelt(text, limit)
    assert len(shown) <= limit
    assert shown.encode("utf-8").decode("utf-8") == shown
    assert all(c.isprintable() or c == "\u200b" for c in shown)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (61, "1 min"),
        (3660, "1 h 1 min"),
        (90000, "1 d 1 h"),
        (-5, ""),
    ],
)
def test_a_recovery_says_how_long_it_lasted_and_nothing_where_clocks_disagree(seconds: int, said: str) -> None:
    over = resolved(a_transition(), at=later(seconds))
    shown = dict(compose(tell_one(over, RUN, id="m2")).facts)["Lasted"]
    assert shown == (f"{said}, 33 steps" if said else "33 steps")


def test_a_group_is_named_by_its_cause_and_weighs_what_its_strongest_weighs() -> None:
    message = compose(a_group())
    assert message.title == "CRITICAL: kl_pull_dominates and 3 more on tiny (r1)"
    assert message.tone is Tone.CRITICAL
    sections = {section.label: section.text for section in message.sections}
    assert sections["Symptoms"] == "symptom_rule (CRITICAL) since step 117: 3.5 (threshold 1)"
    assert sections["Also"].endswith("over_rule resolved at step 150")


@pytest.mark.parametrize(
    ("purpose", "title"),
    [
        (Purpose.REMINDER, "WARNING, still open: kl_pull_dominates on tiny run (r1)"),
        (Purpose.ESCALATION, "WARNING, acknowledged by nobody: kl_pull_dominates on tiny run (r1)"),
    ],
)
def test_a_reminder_and_an_escalation_say_what_they_are(purpose: Purpose, title: str) -> None:
    told = note()
    assert compose(replace(told, items=(replace(told.lead, purpose=purpose),))).title == title


def test_changes_of_one_run_that_a_message_does_not_hold_are_counted() -> None:
    told = note()
    count = RunCount(run=RUN, firing=70, resolved=3, severity=Severity.WARNING)
    message = compose(replace(told, counts=(count,)))
    assert message.title == "WARNING: kl_pull_dominates and 72 more on tiny run (r1)"
    assert Section(label="Also", text="72 more") in message.sections


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=40))
def test_the_counts_of_a_digest_add_up_to_all(changes: list[tuple[int, int]]) -> None:
    counts = tuple(
        RunCount(run=RunInfo(id=f"r{i}"), firing=firing, resolved=resolved, severity=Severity.INFO)
        for i, (firing, resolved) in enumerate(changes)
    )
    message = compose(replace(note(), run=None, counts=counts))
    told = [
        tuple(map(int, re.findall(r"(\d+) (?:firing|resolved)", section.text))) for section in message.sections
    ]
    assert (sum(one[0] for one in told), sum(one[1] for one in told)) == (
        sum(firing for firing, _ in changes),
        sum(resolved for _, resolved in changes),
    )
    assert f"{sum(map(sum, changes))} changes of alerts in {len(changes)} runs" in message.title


def test_a_digest_leads_to_the_runs_that_weigh_most() -> None:
    links = compose(a_digest()).links
    assert [link.text for link in links] == [
        "Open the runs",
        "Open run 7 (r7)",
        "Open run 29 (r29)",
        "Open run 28 (r28)",
    ]


def test_a_digest_of_recoveries_is_over() -> None:
    count = RunCount(run=RUN, firing=0, resolved=5, severity=Severity.CRITICAL)
    over = tell_one(resolved(a_transition()), RUN, id="m2")
    message = compose(replace(over, run=None, counts=(count,)))
    assert (message.state, message.tone) == ("RESOLVED", Tone.RESOLVED)


@pytest.mark.parametrize("channel", [Channel(name="t", kind=ChannelKind.WEBHOOK, url="https://x.example/")])
def test_a_test_message_says_so_and_has_all_parts(channel: Channel) -> None:
    message = compose(make_trial(channel, NOW, "https://vitals.example"))
    text = as_text(message)
    assert "This is a test message of RL Vitals" in text
    for words in ("Symptoms: ", "Diagnosis: ", "Trend: ", "Worst sample", "\\xff", "Acknowledge", "×", "↑", "↓"):
        assert words in text
    assert message.trend is not None
    bare = compose(make_trial(replace(channel, samples=False, picture=False), NOW))
    assert "Worst sample" not in as_text(bare)
    assert (bare.trend, bare.links) == (None, ())


@pytest.mark.parametrize(
    ("reward", "told"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (0.0, "0"), (None, "")]
)
def test_a_sample_is_told_with_its_broken_sequences_and_its_reward(reward: float | None, told: str) -> None:
    sample = Sample(step=7, completion="x", reward=reward, invalid_utf8=3)
    section = compose(replace(note(), extras=Extras(sample=sample))).sections[-1]
    rest = f", reward {told}" if told else ""
    assert section.label == f"Worst sample of step 7 (3 ill-formed sequences{rest})"
    assert compose(replace(note(), extras=Extras(sample=Sample(step=7, completion="x")))).sections[-1].label == (
        "Worst sample of step 7"
    )
