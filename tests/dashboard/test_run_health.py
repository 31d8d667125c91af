from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from rlvitals.contract.alert import AlertState, Severity, Silenced
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import RunView
from rlvitals_dashboard.run_health import health_card
from tests.dashboard.fake import RUN
from tests.dashboard.synthetic import lively

FAKE = lively()
ALERTS, RULES = list(FAKE.alerts.values()), FAKE.rules
AT = datetime(2026, 3, 1, 9, tzinfo=timezone.utc)


def incident(**other: Any) -> IncidentView:
    base: dict[str, Any] = {
        "cause": "kl",
        "severity": Severity.CRITICAL,
        "headline": "The pull outweighs <b>the reward</b>",
        "confidence": "high",
        "advice": "Lower the coefficient.",
        "onset_step": 90,
        "onset_at": AT,
        "is_open": True,
        "alerts": ("kl_pull_dominates",),
        "evidence": (),
        "change": {"trl": "GRPOConfig.beta", "verl": "kl_loss_coef"},
        "alert_ids": ("al-1",),
        "since_step": 88,
    }
    return IncidentView(**base | other)


def card(*incidents: IncidentView, run: RunView = FAKE.runs[RUN], alerts: Any = ALERTS) -> str:
    return str(health_card(run, incidents, alerts, RULES, "/ui/run/x"))


def test_the_card_says_what_since_when_what_to_do_and_that_nobody_looks_after_it() -> None:
    said = card(incident(), incident(cause="cut", severity=Severity.WARNING, headline="Cut", onset_step=72))
    for words in ("The pull outweighs <b>the reward</b>", "step 88", "Lower the coefficient.", "GRPOConfig.beta"):
        assert words in said
    assert "nobody yet" in said
    assert "acknowledge-all" in said
    assert said.index("outweighs") < said.index("Cut")
    assert "kl_loss_coef" not in said


def test_who_looks_after_it_is_named_and_nobody_is_asked_again() -> None:
    seen = [replace(a, acknowledged_by="ada <i>") if a.id == "al-1" else a for a in ALERTS]
    said = card(incident(), alerts=seen)
    assert "ada <i>" in said
    assert "acknowledge-all" not in said


def test_that_it_is_silenced_is_said_with_its_end_and_its_author_and_what_is_still_told() -> None:
    assert "Silenced" not in card(incident())
    quiet = Silenced(until=AT, who="ada <i>", why="known")
    hushed = [replace(a, silenced=quiet) if a.id == "al-1" else a for a in ALERTS]
    said = card(incident(), alerts=hushed)
    for words in ("ada <i>", "nobody is told of it", AT.isoformat(), "known"):
        assert words in said
    assert "is told." not in said
    both = incident(alert_ids=("al-1", "al-2"))
    loud = [replace(a, state=AlertState.FIRING) for a in hushed]
    assert "1 other alert of it is told." in card(both, alerts=loud)


def test_a_run_without_an_open_incident_says_how_many_rules_watch_and_how_many_cannot() -> None:
    said = card(incident(is_open=False), alerts=[])
    assert "1 rule watches and none fires. 1 cannot tell yet. 1 cannot run here." in said
    assert "1 rule watches. What fires merely informs." in card(
        alerts=[replace(ALERTS[0], state=AlertState.FIRING)]
    )


def test_a_run_without_a_step_says_so() -> None:
    assert "No step has arrived yet." in card(run=replace(FAKE.runs[RUN], last_step=None))


@pytest.mark.parametrize(
    ("hours", "words"),
    [(3.2, "3.2 GPU-hours"), (0.0, "0 GPU-hours"), (math.nan, "NaN GPU"), (math.inf, "+Inf GPU")],
)
def test_gpu_hours_are_said_as_they_are(hours: float, words: str) -> None:
    assert words in card(incident(gpu_hours=hours))


def test_gpu_hours_that_nobody_knows_are_not_said() -> None:
    assert "GPU-hours" not in card(incident(gpu_hours=None))
