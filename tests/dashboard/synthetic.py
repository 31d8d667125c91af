"""A lively run for the fake service: a spike, every kind of non-finite value, alerts, a proposed command."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from typing import Any

from rlvitals.contract.alert import Alert, AlertState, Severity, Truth
from rlvitals.contract.command import Bounds, CommandKind, CommandState
from rlvitals.contract.view import CommandView, Light, RuleView, TextView
from tests.dashboard.fake import RUN, START, FakeService


def lively(steps: int = 120) -> FakeService:
    """A run with a spike, all kinds of non-finite values, missing metrics, alerts and a proposed command."""
    fake = FakeService()
    for step in range(steps):
        grow(fake, step)
    fake.put("gradient.norm", {41: math.nan, 57: math.nan, 60: math.inf})
    fake.put("policy.loss", {57: -math.inf})
    fake.put("kl.k3", {77: 4.2e6})
    fake.alerts = {a.id: a for a in _alerts(steps)}
    fake.commands = {c.id: c for c in _commands(steps)}
    fake.rules = list(_rules())
    fake.texts = list(_texts(steps))
    fake.now_at(steps - 1, light=Light.RED, reason="KL pull dominates the update since step 88", firing=2)
    return fake


def grow(fake: FakeService, step: int) -> None:
    """One more step of every metric."""
    wave, drift = math.sin(step / 7), step / 100
    fake.put("text.invalid_utf8_per_1k", {step: 0.0 if step < 100 else 1.5 + wave})
    fake.put("text.invalid_utf8_count", {step: 0.0 if step < 100 else 6.0})
    fake.put("text.never_trained_rate", {step: 0.0})
    fake.put("length.mean", {step: 118 + 9 * wave + 12 * drift})
    fake.put("length.max", {step: 160.0})
    fake.put("length.min", {step: 61.0 + wave})
    fake.put("length.truncation_rate", {step: min(1.0, max(0.0, 0.02 + 0.25 * (drift - 0.4) + 0.04 * wave))})
    fake.put("reward.mean", {step: 0.2 + 0.5 * (1 - math.exp(-drift)) + 0.05 * wave})
    fake.put("reward.std", {step: 0.3 + 0.02 * wave})
    fake.put("reward.zero_std_groups", {step: 0.1 + 0.05 * wave})
    fake.put("kl.k3", {step: 0.02 + 0.03 * drift + 0.004 * wave})
    fake.put("kl.pull_ratio", {step: 0.3 + 1.9 * max(0.0, drift - 0.6) + 0.1 * wave})
    fake.put("kl.grad_norm", {step: 12 + 40 * drift + 3 * wave})
    fake.put("kl.coef", {step: 0.8 if step < 96 else 0.4})
    fake.put("kl.k1", {step: 0.01 * wave})
    fake.put("policy.loss", {step: 0.4 - 0.1 * drift + 0.03 * wave})
    fake.put("policy.entropy", {step: 1.9 - 0.4 * drift})
    fake.put("policy.learning_rate", {step: 1e-6})
    fake.put("gradient.norm", {step: 0.9 + 0.2 * wave})
    fake.put("numerics.nonfinite", {step: 0.0})
    fake.put("progress.step_time", {step: 1.4 + 0.2 * wave})
    fake.put("my.own <b>score</b>", {step: wave})


def _alerts(steps: int) -> list[Alert]:
    shared: dict[str, Any] = {"run": RUN, "attempt": "a1", "since_time": START}
    return [
        Alert(
            id="al-1",
            rule="kl_pull_dominates",
            severity=Severity.CRITICAL,
            state=AlertState.FIRING,
            since_step=88,
            metric="kl.pull_ratio",
            value=1.53,
            threshold=1.0,
            summary="The KL pull outweighs the policy pull: the update mostly returns to the reference.",
            advice="Lower beta (TRL: GRPOConfig.beta) or approve the proposed value.",
            runbook="docs/runbooks/kl_pull_dominates.md",
            **shared,
        ),
        Alert(
            id="al-2",
            rule="truncation_high",
            severity=Severity.WARNING,
            state=AlertState.FIRING,
            since_step=70,
            metric="length.truncation_rate",
            value=0.19,
            threshold=0.05,
            summary="19 % of the completions are cut by max_completion_length.",
            advice="Raise max_completion_length, or mask truncated completions.",
            **shared,
        ),
        Alert(
            id="al-3",
            rule="nonfinite_gradient",
            severity=Severity.CRITICAL,
            state=AlertState.RESOLVED,
            since_step=41,
            resolved_step=61,
            resolved_at=START + timedelta(minutes=3),
            metric="gradient.norm",
            value=math.nan,
            threshold=0.0,
            summary="The gradient norm was not finite.",
            **shared,
        ),
    ]


def _commands(steps: int) -> list[CommandView]:
    soon = datetime.now(timezone.utc) + timedelta(minutes=9)
    return [
        CommandView(
            id="c-1",
            run=RUN,
            kind=CommandKind.SET_KL_COEF,
            state=CommandState.PROPOSED,
            created_at=START,
            expires_at=soon,
            argument=0.2,
            bounds=Bounds(low=0.01, high=2.0),
            who="policy",
            why="kl_pull_dominates fires: pull ratio 1.53 above 1",
            rule="kl_pull_dominates",
            alert_id="al-1",
        ),
        CommandView(
            id="c-0",
            run=RUN,
            kind=CommandKind.SET_KL_COEF,
            state=CommandState.APPLIED,
            created_at=START,
            expires_at=soon,
            argument=0.4,
            decided_by="anna",
            before=0.8,
            after=0.4,
            step=96,
        ),
    ]


def _rules() -> list[RuleView]:
    shared: dict[str, Any] = {"expr": "…", "summary": ""}
    return [
        RuleView(
            rule="kl_pull_dominates",
            severity=Severity.CRITICAL,
            truth=Truth.ACTIVE,
            dormant=False,
            reason="",
            **shared,
        ),
        RuleView(
            rule="ratio_extreme",
            severity=Severity.CRITICAL,
            truth=Truth.UNKNOWN,
            dormant=True,
            reason="ratio.ess is missing: the trainer does not compute old log-probs",
            **shared,
        ),
        RuleView(
            rule="entropy_collapse",
            severity=Severity.WARNING,
            truth=Truth.UNKNOWN,
            dormant=False,
            reason="warm-up: 20 of 50 steps",
            **shared,
        ),
    ]


def _texts(steps: int) -> list[TextView]:
    return [
        TextView(
            attempt="a1",
            step=steps - 1,
            sample=3,
            completion="The sum of 17 and 25 is 42.\nSo the answer is 42.",
            prompt="What is 17 + 25?",
            reward=1.0,
        ),
        TextView(
            attempt="a1",
            step=steps - 2,
            sample=0,
            completion="The ans\ufffd\ufffdwer is <script>alert(1)</script> \u200b42\x07 \u202egnp.exe",
            prompt="What is 17 + 25?",
            reward=0.0,
            truncated=True,
            invalid_utf8=2,
            why="worst_utf8",
        ),
    ]
