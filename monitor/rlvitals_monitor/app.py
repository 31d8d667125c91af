"""Puts the service together: store, live, worker, guards, routers. Nothing happens before the app's start."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from types import ModuleType
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from rlvitals_monitor import auth, collector, openapi
from rlvitals_monitor.access.uses import UseKeeper, Uses
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.api import (
    alerts,
    audit,
    backtests,
    channels,
    commands,
    comparison,
    deletion,
    export,
    health,
    incidents,
    links,
    login,
    overviews,
    policies,
    problems,
    replay,
    retention,
    rule_edits,
    rules,
    run_metrics,
    runs,
    series,
    service,
    sessions,
    shared_pages,
    shares,
    silences,
    steering,
    texts,
    tokens,
    users,
)
from rlvitals_monitor.api.answer_language import AnswerLanguage
from rlvitals_monitor.browser_guard import BrowserGuard
from rlvitals_monitor.clocks import utc_now
from rlvitals_monitor.control.settings import ControlSettings
from rlvitals_monitor.fanout import Fanout
from rlvitals_monitor.heartbeat import Heartbeat, make_watcher
from rlvitals_monitor.intake import Intake, IntakeSettings
from rlvitals_monitor.live import Live
from rlvitals_monitor.logs import hide_tokens
from rlvitals_monitor.notify.channel_book import ChannelBook
from rlvitals_monitor.notify.dispatcher import Dispatcher
from rlvitals_monitor.notify.settings import NotifySettings
from rlvitals_monitor.request_bounds import RequestBounds
from rlvitals_monitor.roles import Role
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.telemetry import Telemetry
from rlvitals_monitor.wellness import judge, read_facts
from rlvitals_monitor.worker import Worker

API = "/api"


def create_app(settings: Settings, *, with_worker: bool = True) -> FastAPI:
    """The service as one ASGI app; its lifespan migrates the database and runs the worker.

    It does what ``settings.role`` says; `with_worker` false leaves the worker out also where the role has one.
    ``app.state`` has settings, started_at, store, live, telemetry, uses, policies, limits, channel_book, rulebook,
    heartbeat (None without a watcher), worker, dispatcher and fanout (None without them), draining, and after the
    start ``local_token`` ("" where the role shows nothing). The explicit 404 below ``/api`` keeps later catch-alls
    (the dashboard's) from answering there.
    """
    app = FastAPI(
        title="RL Vitals",
        version=version("rlvitals"),
        description="The vital-signs monitor for RL post-training of language models.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan(settings, with_worker and settings.role.judges),
    )
    settings.data_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    app.state.settings = settings
    app.state.store = Store(settings.store_url)
    app.state.live = Live()
    app.state.telemetry = Telemetry()
    app.state.intake = Intake(IntakeSettings())
    app.state.uses = Uses()
    app.state.use_keeper = None
    control = ControlSettings(policy=settings.policy)
    app.state.policies, app.state.limits = control.policies, control.limits
    notify = NotifySettings()
    app.state.channel_book = ChannelBook.of(notify, settings.url, utc_now())
    app.state.heartbeat = _heartbeat(app, notify)
    app.state.started_at = utc_now()
    app.state.rulebook = RuleBook.of(RuleSettings(), utc_now(), app.state.store)
    app.state.worker = app.state.dispatcher = app.state.fanout = None
    app.state.draining = False
    app.add_middleware(AnswerLanguage)
    app.add_middleware(RequestBounds, telemetry=app.state.telemetry)
    app.add_middleware(BrowserGuard, hosts=settings.hosts)
    problems.install(app)
    openapi.install(app)
    hide_tokens()
    for part in _parts(settings.role):
        app.include_router(part.router)
    app.add_route(f"{API}/{{rest:path}}", _nothing_here, methods=_METHODS, include_in_schema=False)
    return app


_SHOWING = (
    runs,
    deletion,
    retention,
    export,
    texts,
    series,
    overviews,
    comparison,
    alerts,
    incidents,
    rule_edits,
    rules,
    replay,
    backtests,
    commands,
    policies,
    audit,
    channels,
    steering,
    silences,
    links,
    run_metrics,
    health,
    service,
    login,
    tokens,
    users,
    sessions,
    shares,
    shared_pages,
)
log = logging.getLogger(__name__)
_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def _parts(role: Role) -> tuple[ModuleType, ...]:
    collecting = (collector,) if role.collects else ()
    return (*collecting, *_SHOWING) if role.shows else (*collecting, health)


async def _nothing_here(request: Any) -> Response:
    return problems.problem(404, f"there is nothing at {request.url.path[:200]}", kind="not-found")


def _lifespan(settings: Settings, with_worker: bool) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(_start, app, settings, with_worker)
        try:
            yield
        finally:
            await run_in_threadpool(_stop, app)

    return lifespan


def _start(app: FastAPI, settings: Settings, with_worker: bool) -> None:
    app.state.store.migrate()
    shows = settings.role.shows
    app.state.local_token = auth.ensure_local_token(app.state.store, settings, utc_now()) if shows else ""
    app.state.use_keeper = UseKeeper(app.state.store, app.state.uses, utc_now)
    app.state.use_keeper.start()
    if with_worker:
        app.state.dispatcher = Dispatcher(app.state.store, app.state.channel_book)
        app.state.channel_book.refresh(app.state.store, utc_now())
        app.state.dispatcher.start()
        app.state.worker = _worker(app)
        if app.state.heartbeat is not None:
            app.state.heartbeat.start()
    if settings.role is not Role.ALL or not app.state.store.is_sqlite:
        intake = app.state.intake
        app.state.fanout = Fanout(app.state.store, app.state.live, heard=lambda: _wake(app), noted=intake.note)
        intake.told = app.state.fanout.spend
        app.state.fanout.start()


def _wake(app: FastAPI) -> None:
    if app.state.worker is not None:
        app.state.worker.wake()


def _stop(app: FastAPI) -> None:
    if app.state.heartbeat is not None:
        app.state.heartbeat.stop()
    if app.state.worker is not None:
        app.state.worker.stop()
        app.state.worker = None
    if app.state.dispatcher is not None:
        app.state.dispatcher.stop()
        app.state.dispatcher = None
    if app.state.fanout is not None:
        app.state.fanout.stop()
        app.state.fanout = None
    if app.state.use_keeper is not None:
        app.state.use_keeper.stop()
        app.state.use_keeper = None
    app.state.store.close()


def _heartbeat(app: FastAPI, settings: NotifySettings) -> Heartbeat | None:
    """Raises `ChannelError` for an address that cannot be one."""
    watcher, state = make_watcher(settings), app.state
    if watcher is None:
        return None
    return Heartbeat(
        watcher,
        lambda now: judge(read_facts(state.store, state.worker, state.dispatcher), now),
        every_s=settings.heartbeat_s,
        told=state.telemetry.note_ping,
    )


def _worker(app: FastAPI) -> Worker:
    state = app.state
    worker = Worker(
        state.store,
        live=state.live,
        measured=state.telemetry.note_work,
        channels=lambda: state.channel_book.channels,
        policies=state.policies,
        limits=state.limits,
        told=state.dispatcher.wake,
        book=state.rulebook,
    )
    worker.start()
    return worker
