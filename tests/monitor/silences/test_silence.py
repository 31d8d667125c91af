"""Which alerts a silence is about, and when it is in force."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals.contract.view import SilenceState
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.silences.silence import MATCHERS_MAX, InForce, Silence, about, read_matchers
from tests.monitor.planted import NOW, an_alert, later

RUN = RunInfo(id="r1", name="tiny", project="demo")
HOUR = 3600


def a_silence(*match: str, **given: object) -> Silence:
    fields: dict[str, object] = {
        "id": "s1",
        "matchers": read_matchers(match or ["rule=kl_*"]),
        "starts_at": NOW,
        "ends_at": later(HOUR),
        "created_at": NOW,
    }
    return Silence(**{**fields, **given})  # type: ignore[arg-type]


def test_all_of_its_matchers_must_hold() -> None:
    assert a_silence("rule=kl_*", "run=r1").matches(an_alert(), RUN)
    assert not a_silence("rule=kl_*", "run=r2").matches(an_alert(), RUN)
    assert not a_silence("rule=kl_*", "severity!=warning").matches(an_alert(), RUN)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_what_was_measured_does_not_matter(value: float | None) -> None:
    assert a_silence().matches(an_alert(value=value), RUN)


def test_it_is_in_force_from_its_begin_until_just_before_its_end() -> None:
    silence = a_silence()
    seen = {s: silence.state(later(s)) for s in (-1, 0, HOUR - 1, HOUR)}
    assert seen == {
        -1: SilenceState.PENDING,
        0: SilenceState.ACTIVE,
        HOUR - 1: SilenceState.ACTIVE,
        HOUR: SilenceState.ENDED,
    }
    assert silence.at(later(5)) == silence
    assert silence.at(later(HOUR)) is None


def test_one_that_comes_again_is_in_force_in_its_hours_only_and_says_when_this_time_ends() -> None:
    silence = a_silence(ends_at=NOW + timedelta(days=30), hours=Hours.read("0 22 * * *", "UTC", HOUR))
    night = NOW.replace(hour=22)
    on = silence.at(night + timedelta(minutes=10))
    assert on is not None
    assert (on.starts_at, on.ends_at) == (night, night + timedelta(hours=1))
    assert silence.state(NOW) is SilenceState.RESTING


def test_its_last_time_ends_with_the_whole() -> None:
    night = NOW.replace(hour=22)
    silence = a_silence(ends_at=night + timedelta(minutes=20), hours=Hours.read("0 22 * * *", "UTC", HOUR))
    on = silence.at(night)
    assert on is not None
    assert on.ends_at == night + timedelta(minutes=20)


def test_of_several_about_an_alert_the_one_that_ends_last_counts() -> None:
    short, long, other = a_silence(), a_silence(id="s2", ends_at=later(2 * HOUR)), a_silence("run=r2", id="s3")
    assert InForce([short, long, other]).about(an_alert(), RUN) == long
    assert InForce([other]).about(an_alert(), RUN) is None


@pytest.mark.parametrize("match", ["run=r1", "run=tiny", "run=r*", "run!=r2", "project=*", "rule=kl_*"])
def test_of_thousands_the_one_about_an_alert_is_found_and_few_are_looked_at(
    match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(
        Silence,
        "matches",
        lambda self, alert, run, _did=Silence.matches: looked.append(self.id) or _did(self, alert, run),
    )
    many = [a_silence(f"run=x{number}", "rule=*", id=f"s{number}") for number in range(3000)]
    mine = a_silence(match, id="mine")
    run = RunInfo(id="r1", name="tiny", project="math")
    assert InForce([*many[:1000], mine, *many[1000:]]).about(an_alert(), run) == mine
    assert looked == ["mine"]


def test_one_for_an_alert_is_about_its_rule_on_its_run_and_nothing_else() -> None:
    mine = a_silence(matchers=about(an_alert()))
    assert mine.matches(an_alert(), RUN)
    assert not mine.matches(an_alert(rule="nonfinite"), RUN)
    assert not mine.matches(an_alert(), RunInfo(id="r2"))


@pytest.mark.parametrize("name", ["*", "a*b", "a?b", "[ab]", "a b", " a", "a\nb", "=", "!="])
def test_a_name_with_wild_characters_means_itself(name: str) -> None:
    mine = read_matchers([str(m) for m in about(an_alert(rule=name))])
    assert a_silence(matchers=mine).matches(an_alert(rule=name), RUN)
    assert not a_silence(matchers=mine).matches(an_alert(rule="aXb"), RUN)


@pytest.mark.parametrize("match", [[], ["rule=a"] * (MATCHERS_MAX + 1), ["rule=" + "a" * 400], ["everything"]])
def test_a_silence_of_everything_must_be_asked_for_in_so_many_words(match: list[str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_matchers(match)
