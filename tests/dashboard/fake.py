"""A small service that answers the query API from memory, for pages to be tested without the real one."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from fastapi import FastAPI, Request, Response

from rlvitals.contract.alert import Alert, AlertState, Severity, Truth
from rlvitals.contract.codec import dumps, loads
from rlvitals.contract.command import Bounds, CommandKind, CommandState
from rlvitals.contract.report import Text
from rlvitals.contract.view import (
    AttemptView,
    CommandView,
    Light,
    MetricView,
    Page,
    RuleView,
    RunState,
    RunView,
    SeriesView,
)

START = datetime(2026, 3, 1, 9, 0, tzinfo=timezone.utc)
COOKIE = "rlvitals_session=anna"
RUN = "grpo-1"

MISSING = {
    "ratio.ess": "the trainer does not compute old log-probs (one update per batch)",
    "ratio.rollout_logp_diff": "no separate sampler engine",
}


class FakeService:
    """``step()`` advances the one lively run; every call is kept in ``calls`` as ``(method, path, body)``."""

    def __init__(self) -> None:
        self.series: dict[str, dict[int, float]] = {}
        self.runs: dict[str, RunView] = {RUN: self._run(RUN)}
        self.alerts: dict[str, Alert] = {}
        self.commands: dict[str, CommandView] = {}
        self.texts: list[Text] = []
        self.rules: list[RuleView] = []
        self.missing = dict(MISSING)
        self.version = 1
        self.calls: list[tuple[str, str, Any]] = []
        self.down = False
        self._moved = asyncio.Condition()
        self.app = self._app()

    def _run(self, run: str, **other: Any) -> RunView:
        base: dict[str, Any] = {
            "id": run,
            "project": "math-grpo",
            "name": "qwen-0.6b grammar",
            "framework": "trl 1.16.0",
            "model": "Qwen2-tiny",
            "state": RunState.RUNNING,
            "light": Light.GREEN,
            "reason": "no alert is firing",
            "created_at": datetime.now(timezone.utc),
            "last_seen_at": datetime.now(timezone.utc),
            "last_progress_at": None,
            "last_step": None,
            "phase": "update",
            "kl_coef": 0.8,
            "steps_per_minute": 41.7,
            "attempts": (AttemptView(id="a1", ordinal=1, started_at=START),),
        }
        return RunView(**base | other)

    def add_run(self, run: str, **other: Any) -> None:
        self.runs[run] = self._run(run, **other)

    def put(self, metric: str, values: Mapping[int, float]) -> None:
        self.series.setdefault(metric, {}).update(values)

    def now_at(self, step: int, **changes: Any) -> None:
        self.runs[RUN] = replace(
            self.runs[RUN], last_step=step, last_seen_at=datetime.now(timezone.utc), **changes
        )

    async def moved(self) -> None:
        self.version += 1
        async with self._moved:
            self._moved.notify_all()

    # what the pages ask

    def metrics(self) -> list[MetricView]:
        seen = [
            MetricView(metric=m, points=len(at), last_step=max(at), last_value=at[max(at)])
            for m, at in self.series.items()
        ]
        absent = [MetricView(metric=m, points=0, missing_reason=why) for m, why in self.missing.items()]
        return seen + absent

    def view(self, metric: str, first: int | None, last: int | None, limit: int) -> SeriesView:
        points = sorted(
            (s, v)
            for s, v in self.series.get(metric, {}).items()
            if (first is None or s >= first) and (last is None or s <= last)
        )
        kinds = {
            "nan": tuple(s for s, v in points if math.isnan(v)),
            "pos_inf": tuple(s for s, v in points if v == math.inf),
            "neg_inf": tuple(s for s, v in points if v == -math.inf),
        }
        bucket = max(1, math.ceil(len(points) / limit))
        if bucket == 1:
            steps, values = tuple(s for s, _ in points), tuple(v for _, v in points)
            return SeriesView(run=RUN, attempt="a1", metric=metric, bucket=1, step=steps, value=values, **kinds)
        groups = [points[i : i + bucket] for i in range(0, len(points), bucket)]
        finite = [[v for _, v in g if math.isfinite(v)] for g in groups]
        return SeriesView(
            run=RUN,
            attempt="a1",
            metric=metric,
            bucket=bucket,
            step=tuple(g[0][0] for g in groups),
            value=tuple(g[-1][1] for g in groups),
            low=tuple(min(f, default=None) for f in finite),
            high=tuple(max(f, default=None) for f in finite),
            **kinds,
        )

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.middleware("http")
        async def door(request: Request, call_next: Any) -> Response:
            path = request.url.path
            if path.startswith("/api/"):
                if self.down:
                    return _problem(503, "The database does not answer")
                if COOKIE not in request.headers.get("cookie", ""):
                    return _problem(401, "Sign in first")
                if request.method == "POST":
                    self.calls.append((request.method, path, loads(await request.body())))
            answer: Response = await call_next(request)
            return answer

        @app.get("/ui/login")
        async def login(next: str = "/ui/") -> Response:
            cookie = f"{COOKIE}; HttpOnly; SameSite=Strict; Path=/"
            return Response(status_code=303, headers={"location": next, "set-cookie": cookie})

        @app.get("/api/v1/runs")
        async def runs() -> Response:
            return _json(Page(items=tuple(self.runs.values())))

        @app.get("/api/v1/changes")
        async def any_change(after: int, wait_s: float) -> Response:
            return await self._changes(after, wait_s)

        @app.get("/api/v1/runs/{run}")
        async def run(run: str) -> Response:
            return _json(self.runs[run]) if run in self.runs else _problem(404, "No such run", f"no run {run!r}")

        @app.get("/api/v1/runs/{run}/changes")
        async def changes(run: str, after: int, wait_s: float) -> Response:
            return await self._changes(after, wait_s)

        @app.get("/api/v1/runs/{run}/metrics")
        async def metrics(run: str) -> Response:
            return _json(self.metrics())

        @app.get("/api/v1/runs/{run}/series")
        async def series(request: Request, run: str, limit: int = 800) -> Response:
            query = request.query_params
            first, last = (int(query[k]) if k in query else None for k in ("from", "to"))
            return _json([self.view(m, first, last, limit) for m in query.getlist("metric")])

        @app.get("/api/v1/runs/{run}/texts")
        async def texts(run: str) -> Response:
            return _json(self.texts)

        @app.get("/api/v1/runs/{run}/rules")
        async def rules(run: str) -> Response:
            return _json(self.rules)

        @app.get("/api/v1/alerts")
        async def alerts() -> Response:
            return _json(Page(items=tuple(self.alerts.values())))

        @app.get("/api/v1/commands")
        async def commands() -> Response:
            return _json(Page(items=tuple(self.commands.values())))

        @app.post("/api/v1/commands/{name}/{verb}")
        async def decide(name: str, verb: str, request: Request) -> Response:
            body = loads(await request.body())
            if verb == "approve" and (body.get("argument") or 0) > 2:
                return _problem(409, "Out of bounds", "the argument must lie in 0.01 to 2")
            state = CommandState.PENDING if verb == "approve" else CommandState.DENIED
            argument = body.get("argument", self.commands[name].argument)
            self.commands[name] = replace(
                self.commands[name], state=state, decided_by="anna", argument=argument, decided_at=START
            )
            await self.moved()
            return _json(self.commands[name])

        @app.post("/api/v1/alerts/{name}/acknowledge")
        async def acknowledge(name: str) -> Response:
            self.alerts[name] = replace(self.alerts[name], acknowledged_by="anna")
            await self.moved()
            return _json(self.alerts[name])

        return app

    async def _changes(self, after: int, wait_s: float) -> Response:
        async with self._moved:
            if self.version <= after and wait_s > 0:
                try:
                    await asyncio.wait_for(self._moved.wait(), wait_s)
                except (asyncio.TimeoutError, TimeoutError):
                    pass
        return _json({"version": self.version, "last_step": self.runs.get(RUN) and self.runs[RUN].last_step})


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
            summary="The KL pull is larger than the policy pull since step 88: the update mostly returns to the reference.",
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


def _texts(steps: int) -> list[Text]:
    return [
        Text(
            seq=1,
            step=steps - 1,
            sample=3,
            completion="The sum of 17 and 25 is 42.\nSo the answer is 42.",
            prompt="What is 17 + 25?",
            reward=1.0,
        ),
        Text(
            seq=2,
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


def _json(value: object) -> Response:
    return Response(dumps(value), media_type="application/json")


def _problem(status: int, title: str, detail: str = "") -> Response:
    body = {"title": title, "status": status, "detail": detail}
    return Response(dumps(body), status_code=status, media_type="application/problem+json")
