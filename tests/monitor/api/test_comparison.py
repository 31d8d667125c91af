"""Runs side by side through the API, on both databases."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import insert, select

from rlvitals.contract import codec
from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.comparison import ComparisonView, Likeness, SettingsView
from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals.contract.wire import to_wire
from rlvitals_monitor.store.tables import attempts, evaluations
from tests.monitor.batches import NOW_S
from tests.monitor.planted import a_transition, an_alert, plant_transition

Values = Callable[[int], Mapping[str, float]]


def report(
    client: TestClient,
    run: str,
    values: Values,
    steps: range = range(100),
    *,
    attempt: str = "a1",
    pace: float = 1.0,
    **info: Any,
) -> None:
    """``values`` may leave a metric out at a step; each step takes ``pace`` seconds."""
    batch = ReportBatch(
        run=RunInfo(id=run, **{"project": "demo", **info}),
        attempt=attempt,
        writer="main",
        steps=tuple(
            StepReport(seq=step + 1, step=step, time_s=NOW_S + step * pace, values=values(step)) for step in steps
        ),
    )
    body = codec.encode(to_wire(batch))
    answer = client.post("/api/v1/reports", json=body)
    assert answer.status_code == 200, answer.text


def compared(client: TestClient, query: str) -> ComparisonView:
    answer = client.get(f"/api/v1/compare?{query}")
    assert answer.status_code == 200, answer.text
    return codec.decode(ComparisonView, answer.json())


def wobble(step: int, seed: int = 0) -> float:
    """The same noise for the same step."""
    return random.Random(100_000 * seed + step).gauss(0, 0.1)


def judged(app: FastAPI, run: str, step: int = 99) -> None:
    """As the worker leaves it."""
    with app.state.store.begin() as conn:
        number = conn.scalar(select(attempts.c.number).where(attempts.c.run == run))
        conn.execute(insert(evaluations).values(attempt=number, step=step, memory={}))


def test_two_runs_are_equal_up_to_a_step_and_apart_from_a_later_one(client: TestClient) -> None:
    report(client, "one", lambda s: {"reward.mean": wobble(s), "kl.coef": 0.1})
    report(
        client,
        "two",
        lambda s: {"reward.mean": wobble(s, s >= 30) + (1.0 if s >= 60 else 0.0), "kl.coef": 0.1},
    )
    view = compared(client, "run=one&run=two&metric=reward.mean&metric=kl.coef")
    reward, coefficient = (metric.partings[0] for metric in view.metrics)
    assert (reward.likeness, reward.different_step) == (Likeness.APART, 30)
    assert reward.reference_step == reward.step
    assert 55 <= (reward.step or 0) <= 65
    assert (coefficient.likeness, coefficient.different_step) == (Likeness.SAME, None)
    assert [run.key for run in view.runs] == ["one", "two"]
    assert view.counted == "optimizer steps"


def test_nan_both_infinities_and_missing_are_told_apart(client: TestClient) -> None:
    odd = {3: math.nan, 4: math.inf, 5: -math.inf}
    report(client, "one", lambda s: {"m": odd.get(s, 1.0)})
    report(client, "two", lambda s: {} if s == 7 else {"m": 1.0})
    view = compared(client, "run=one&run=two&metric=m&metric=absent")
    one, two = view.metrics[0].curves
    assert (one.nan, one.pos_inf, one.neg_inf) == ((3.0,), (4.0,), (5.0,))
    assert 7 not in two.step
    assert 7 in one.step
    assert view.metrics[0].partings[0].reason.startswith("a number where the first run has NaN")
    assert view.metrics[0].partings[0].different_step == 3
    absent = view.metrics[1]
    assert absent.partings[0].likeness is Likeness.NOT_JUDGED
    assert absent.partings[0].reason == "the first run has no absent"
    assert absent.curves[0].at == ()


def test_runs_of_other_batch_sizes_meet_on_what_they_have_seen(client: TestClient) -> None:
    """The second does half the steps, each with twice of everything: on these axes they are one curve."""

    def told(step: int, size: int) -> Mapping[str, float]:
        seen = size * step
        return {"m": seen / 10, "progress.tokens": 1000.0 * seen, "length.completions": 8.0 * size}

    report(client, "one", lambda s: told(s, 1), range(1, 101))
    report(client, "two", lambda s: told(s, 2), range(1, 51), pace=2.0)
    for by in ("tokens", "samples", "time"):
        view = compared(client, f"run=one&run=two&metric=m&by={by}")
        one, two = view.metrics[0].curves
        assert one.at[-1] == pytest.approx(two.at[-1], rel=0.03)
        assert view.metrics[0].partings[0].different_step is None
        # by time the first report is place 0, when the second run has done twice as much
        assert (view.metrics[0].partings[0].likeness is Likeness.APART) == (by == "time")
    steps = compared(client, "run=one&run=two&metric=m")
    assert steps.metrics[0].partings[0].likeness is Likeness.APART


def test_an_axis_counts_the_same_for_all_and_a_run_without_it_says_why(client: TestClient) -> None:
    report(client, "one", lambda s: {"m": 1.0, "progress.tokens": 10.0 * s, "policy.loss_tokens": 7.0})
    report(client, "two", lambda s: {"m": 1.0, "policy.loss_tokens": 7.0})
    report(client, "mute", lambda s: {"m": 1.0})
    both = compared(client, "run=one&run=two&metric=m&by=tokens")
    assert both.counted == "tokens under the loss mask"
    assert both.metrics[0].curves[0].at[-1] == 700.0
    view = compared(client, "run=one&run=mute&metric=m&by=tokens")
    assert view.counted == "tokens by the trainer's count"
    assert [bool(run.fault) for run in view.runs] == [False, True]
    assert view.metrics[0].curves[1].off_axis == 100
    assert view.metrics[0].partings[0].likeness is Likeness.NOT_JUDGED


def test_a_zoom_shows_what_lies_there_and_moves_no_verdict(client: TestClient) -> None:
    report(client, "one", lambda s: {"m": wobble(s), "progress.tokens": 100.0 * s})
    report(client, "two", lambda s: {"m": wobble(s, 1) + (s >= 50), "progress.tokens": 100.0 * s})
    whole = compared(client, "run=one&run=two&metric=m&by=tokens")
    view = compared(client, "run=one&run=two&metric=m&by=tokens&from=1000&to=2000&limit=4")
    assert view.metrics[0].partings == whole.metrics[0].partings
    for curve in view.metrics[0].curves:
        assert curve.bucket > 1
        assert curve.at
        assert min(curve.at) >= 1000
        assert max(curve.at) <= 2000


def test_a_spike_in_a_long_run_survives_its_buckets(client: TestClient) -> None:
    for begin in range(0, 3000, 500):
        report(client, "long", lambda s: {"m": 9.0 if s == 1234 else 1.0}, range(begin, begin + 500))
    (curve,) = compared(client, "run=long&metric=m&limit=20").metrics[0].curves
    assert curve.bucket > 1
    assert max(value for value in curve.high if value is not None) == 9.0


def test_attempts_of_one_run_are_compared_and_the_newest_with_a_step_stands_for_it(client: TestClient) -> None:
    report(client, "r", lambda s: {"m": 1.0}, range(20))
    report(client, "r", lambda s: {"m": 2.0}, range(10, 30), attempt="a2")
    view = compared(client, "run=r@a1&run=r&metric=m")
    assert [(run.key, run.attempt, run.ordinal) for run in view.runs] == [("r@a1", "a1", 1), ("r", "a2", 2)]
    assert view.metrics[0].partings[0].step == 10


def test_the_band_is_of_the_projects_other_runs_that_no_rule_warned_of(client: TestClient, app: FastAPI) -> None:
    for n, run in enumerate(("one", "well", "fine", "sick", "short", "unjudged", "late")):
        size = range(20) if run == "short" else range(100)
        report(client, run, lambda s, n=n: {"m": n + wobble(s)}, size)  # type: ignore[misc]
        if run != "unjudged":
            judged(app, run, size[-1])
    report(client, "elsewhere", lambda s: {"m": 1.0}, project="other")
    judged(app, "elsewhere")
    told = {"sick": ("reward_flat", Severity.WARNING), "fine": ("hint", Severity.INFO)}
    told["late"] = ("rlvitals/lost", Severity.CRITICAL)
    for run, (rule, severity) in told.items():
        alert = an_alert(id=f"{run}-1", run=run, rule=rule, severity=severity, state=AlertState.RESOLVED)
        with app.state.store.begin() as conn:
            plant_transition(conn, a_transition(alert, id=f"x-{run}"))
    view = compared(client, "run=one&metric=m")
    assert set(view.healthy) == {"well", "fine", "late"}
    band = view.metrics[0].band
    assert band.runs == 3
    assert 0.5 < min(band.low) < 1.2
    assert 5.8 < max(band.high) < 6.5
    chosen = compared(client, "run=one&metric=m&healthy=sick&healthy=well")
    assert (chosen.healthy, chosen.healthy_reason) == (("sick", "well"), "chosen by hand")
    assert compared(client, "run=one&metric=m&healthy=none").metrics[0].band.at == ()
    lone = compared(client, "run=one&run=well&run=fine&metric=m")
    assert lone.healthy == ()
    assert lone.healthy_reason.endswith("and it has 1")


def test_settings_are_compared_by_run(client: TestClient) -> None:
    report(client, "one", lambda s: {"m": 1.0}, range(2), config={"lr": 1e-6, "kl": {"coef": 0.1}})
    report(client, "two", lambda s: {"m": 1.0}, range(2), config={"lr": 1e-6, "kl": {"coef": 0.2}}, name="<b>")
    answer = client.get("/api/v1/compare/settings?run=one@a1&run=two")
    view = codec.decode(SettingsView, answer.json())
    assert [(s.name, dict(s.values)) for s in view.settings if not s.alike] == [
        ("kl.coef", {"one": 0.1, "two": 0.2})
    ]
    assert view.runs["two"] == "<b>"


REFUSED = {
    "run=one&metric=m&by=moon": 422,
    "run=one&metric=m&from=nan": 422,
    "run=one&metric=m&to=inf": 422,
    "run=one": 422,
    "metric=m": 422,
    "run=gone&metric=m": 404,
    "run=one@gone&metric=m": 404,
    "run=../x&metric=m": 404,
    "run=one&metric=m&healthy=gone": 404,
    "&".join(f"run=r{n}" for n in range(7)) + "&metric=m": 422,
}


def test_what_cannot_be_compared_is_told(client: TestClient) -> None:
    report(client, "one", lambda s: {"m": 1.0}, range(2))
    for query, status in REFUSED.items():
        answer = client.get(f"/api/v1/compare?{query}")
        assert answer.status_code == status, query
        assert answer.json()["detail"], query


def test_nobody_compares_without_the_right_to_read(stranger: TestClient, token_for: Callable[..., Any]) -> None:
    assert stranger.get("/api/v1/compare?run=one&metric=m").status_code == 401
    assert stranger.get("/api/v1/compare?run=a&metric=m", headers=token_for("ingest")).status_code == 403
