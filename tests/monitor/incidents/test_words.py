from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.incident import IncidentStory, IncidentView, axis_of
from rlvitals.contract.view import EventView, Light, RunState, RunView, TextView
from rlvitals_monitor.diagnosis.fired import Fired
from rlvitals_monitor.incidents import words
from rlvitals_monitor.incidents.markdown import write_markdown
from rlvitals_monitor.incidents.page import write_page
from rlvitals_monitor.incidents.view import Surroundings, last_healthy, unexplained, view_of
from rlvitals_monitor.notify.facts import measured
from rlvitals_monitor.notify.language import Language, phrase_of
from rlvitals_monitor.notify.trend import Trend
from tests.monitor.planted import NOW, a_transition, an_alert


def a_story(*alerts: Alert, texts: tuple[TextView, ...] = ()) -> IncidentStory:
    view = IncidentView(
        cause="nan_inf",
        severity=Severity.CRITICAL,
        headline="A non-finite number",
        confidence="high",
        advice="",
        onset_step=120,
        onset_at=NOW,
        is_open=True,
        alerts=tuple(a.rule for a in alerts),
        evidence=(),
        run="r1",
        attempt="t1",
    )
    return IncidentStory(incident=view, run=a_run(), axis=axis_of(alerts, 130), alerts=alerts, texts=texts)


def a_run() -> RunView:
    return RunView(
        id="r1",
        project="demo",
        name="tiny",
        framework="trl",
        model="",
        state=RunState.RUNNING,
        light=Light.RED,
        reason="",
        created_at=NOW,
        last_seen_at=NOW,
        last_progress_at=None,
        last_step=130,
        phase="update",
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (None, "missing"), (0.5, "0.5")],
)
def test_nan_the_infinities_and_missing_are_four_words_in_both_files(value: float | None, said: str) -> None:
    story = a_story(an_alert(value=value, fired_step=120))
    trend = Trend(metric="kl.pull_ratio", steps=(119, 120), values=(0.1, value), threshold=1.0)
    for file in (write_markdown(story, [trend], NOW), write_page(story, [trend], NOW)):
        assert f"kl.pull_ratio {said}, threshold 1" in file


def test_nothing_that_was_kept_is_told_as_such() -> None:
    for file in (write_markdown(a_story(), [], NOW), write_page(a_story(), [], NOW)):
        assert file.count("None was kept.") == 3
        assert "No command was given." in file
        assert "none was told of before it began" in file


def test_a_fence_within_a_completion_closes_no_fence() -> None:
    text = TextView(attempt="t1", step=120, sample=0, completion="`````\n# Not a heading", number=1)
    file = write_markdown(a_story(texts=(text,)), [], NOW)
    assert "``````\n`````\\n# Not a heading\n``````" in file


def test_a_long_list_of_changes_says_how_many_are_left_out() -> None:
    story = replace(a_story(), transitions=(a_transition(),) * (words.CHANGES_SHOWN + 7))
    told = words.timeline(story)
    assert len(told) == words.CHANGES_SHOWN + 1
    assert told[-1] == "and 7 more changes"


def test_a_checkpoint_that_was_saved_while_another_critical_alert_held_is_not_healthy() -> None:
    earlier = an_alert(
        id="a0",
        severity=Severity.CRITICAL,
        since_step=40,
        fired_step=42,
        state=AlertState.RESOLVED,
        resolved_step=60,
    )
    late = an_alert(id="a1", since_step=117, fired_step=120)
    saved = [EventView(attempt="t1", at=NOW, kind="checkpoint", step=at) for at in (118, 50, 41, 30)]
    around = Surroundings(run=a_run(), attempt="t1", alerts={"a0": earlier, "a1": late}, saved=saved)
    found = last_healthy(around, [late], 117)
    assert found is not None
    assert found.step == 30


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.13, "0.13"), (math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (None, "missing")],
)
def test_a_difference_is_told_as_one_with_what_it_was_compared_with(value: float | None, said: str) -> None:
    alert = an_alert(
        metric="kl.k3", value=value, threshold=0.1, measured="kl.k3 - lag(kl.k3, 10)", sign=">", fired_step=120
    )
    told = f"kl.k3 - lag(kl.k3, 10) {said}, fires above 0.1"
    (onset,) = words.onsets(a_story(alert))
    assert onset.evidence == told
    assert measured(alert, phrase_of(Language.CHINESE)).endswith("（高于 0.1 时触发）")


@pytest.mark.parametrize(("after_s", "hours"), [(1800.0, 4.0), (-60.0, 0.0), (None, 0.0)])
def test_what_an_open_incident_costs_is_counted_by_the_trainers_clock_up_to_its_last_step(
    after_s: float | None, hours: float
) -> None:
    alert = an_alert(id="a1", since_step=117, fired_step=120)
    stepped = None if after_s is None else alert.since_time + timedelta(seconds=after_s)
    run = replace(a_run(), config={"world_size": 8}, last_seen_at=NOW + timedelta(days=3))
    around = Surroundings(run=run, attempt="t1", alerts={"a1": alert}, saved=(), stepped_at=stepped)
    fired = Fired.of(alert)
    assert fired is not None
    (incident,) = unexplained([fired], (), around.alerts)
    assert view_of(incident, around).gpu_hours == pytest.approx(hours)
