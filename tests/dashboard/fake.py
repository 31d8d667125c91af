"""A small service that answers the query API from memory, for pages to be tested without the real one."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from fastapi import FastAPI, Request, Response

from rlvitals.contract.access import AccessKind, MeView
from rlvitals.contract.alert import Alert
from rlvitals.contract.codec import dumps, loads
from rlvitals.contract.command import CommandState
from rlvitals.contract.hooks import HooksView
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.overview import RunOverview
from rlvitals.contract.view import (
    AttemptView,
    CommandView,
    EventView,
    HistogramView,
    Light,
    MetricView,
    Page,
    RuleView,
    RunChoices,
    RunState,
    RunView,
    SeriesView,
    TextView,
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
        self.texts: list[TextView] = []
        self.rules: list[RuleView] = []
        self.hooks = HooksView(run=RUN, attempt="a1", well=True, summary="this client tells of no hooks")
        self.checkpoints: list[EventView] = []
        self.incidents: list[IncidentView] = []
        self.histograms: dict[str, list[HistogramView]] = {}
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
        kinds: dict[str, Any] = {
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
        app.middleware("http")(self._door)
        app.add_api_route("/ui/login", self._login)
        routes: dict[str, Callable[..., Any]] = {
            "/me": lambda: _json(MeView(kind=AccessKind.USER, name="anna", may=("operate", "read"))),
            "/runs": self._runs,
            "/facets": lambda: _json(RunChoices(runs=len(self.runs), archived=0)),
            "/changes": self._changes,
            "/runs/{run}": self._one_run,
            "/runs/{run}/changes": self._changes,
            "/runs/{run}/overview": self._overview,
            "/runs/{run}/tails": self._series,
            "/runs/{run}/metrics": lambda: _json(self.metrics()),
            "/runs/{run}/series": self._series,
            "/runs/{run}/texts": lambda: _json(self.texts),
            "/runs/{run}/rules": lambda: _json(self.rules),
            "/runs/{run}/hooks": lambda: _json(self.hooks),
            "/runs/{run}/events": lambda: _json(self.checkpoints),
            "/runs/{run}/incidents": lambda: _json(self.incidents),
            "/runs/{run}/histograms": lambda metric: _json(self.histograms.get(metric, [])),
            "/alerts": lambda: _json(Page(items=tuple(self.alerts.values()))),
            "/commands": lambda: _json(Page(items=tuple(self.commands.values()))),
        }
        for path, answer in routes.items():
            app.add_api_route(f"/api/v1{path}", answer, response_model=None)
        app.add_api_route("/api/v1/commands/{name}/{verb}", self._decide, methods=["POST"])
        app.add_api_route("/api/v1/alerts/{name}/acknowledge", self._acknowledge, methods=["POST"])
        return app

    async def _door(self, request: Request, call_next: Any) -> Response:
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

    async def _login(self) -> Response:
        cookie = f"{COOKIE}; HttpOnly; SameSite=Strict; Path=/"
        return Response(status_code=303, headers={"location": "/ui/", "set-cookie": cookie})

    async def _runs(self) -> Response:
        return _json(Page(items=tuple(self.runs.values())))

    async def _one_run(self, run: str) -> Response:
        return _json(self.runs[run]) if run in self.runs else _problem(404, "No such run", f"no run {run!r}")

    async def _overview(self, run: str, metrics: bool = True) -> Response:
        if run not in self.runs:
            return await self._one_run(run)
        told = RunOverview(
            run=self.runs[run],
            metrics=tuple(self.metrics()) if metrics else None,
            alerts=tuple(self.alerts.values()),
            commands=tuple(self.commands.values()),
            rules=tuple(self.rules),
            incidents=tuple(self.incidents),
            texts=tuple(self.texts),
            hooks=self.hooks,
            checkpoints=tuple(self.checkpoints),
        )
        return _json(told)

    async def _series(self, request: Request, run: str, limit: int = 800) -> Response:
        query = request.query_params
        first, last = (int(query[k]) if k in query else None for k in ("from", "to"))
        return _json([self.view(m, first, last, limit) for m in query.getlist("metric")])

    async def _decide(self, name: str, verb: str, request: Request) -> Response:
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

    async def _acknowledge(self, name: str) -> Response:
        self.alerts[name] = replace(self.alerts[name], acknowledged_by="anna")
        await self.moved()
        return _json(self.alerts[name])

    async def _changes(self, after: int, wait_s: float) -> Response:
        async with self._moved:
            if self.version <= after and wait_s > 0:
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(self._moved.wait(), wait_s)
        return _json({"version": self.version, "last_step": None})


def _json(value: object) -> Response:
    return Response(dumps(value), media_type="application/json")


def _problem(status: int, title: str, detail: str = "") -> Response:
    body = {"title": title, "status": status, "detail": detail}
    return Response(dumps(body), status_code=status, media_type="application/problem+json")
