"""Every endpoint of the OpenAPI document, asked by everybody: a new endpoint without a row here fails."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.access import AccessKind, Role
from rlvitals_monitor.access.vouching import SECRET_HEADER
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.app import create_app
from rlvitals_monitor.auth import COOKIE, SHARE_COOKIE
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import sessions, shares, tokens, users
from rlvitals_monitor.store.engine import Store
from tests.monitor.batches import NOW, NOW_S
from tests.monitor.conftest import BASE_URL
from tests.monitor.planted import plant_run

OPEN, KNOWN, READ, SHOWN, INGEST, OPERATE, ADMIN = "open", "known", "read", "shown", "ingest", "operate", "admin"
"""What an endpoint asks for. ``shown``: read, and a shared link of just this run."""
_READERS = frozenset({"read", "operate", "admin", "viewer", "operator", "admin session"})
_OPERATORS = frozenset({"operate", "admin", "operator", "admin session"})
_ADMINS = frozenset({"admin", "admin session"})
_INGESTERS = frozenset({"ingest", "ingest:p", "ingest:q"})
_STRANGERS = frozenset({"nobody", "named by a proxy"})
"""Headers of a proxy sign somebody in at the door, and let nobody in by themselves."""
_KNOWN = _READERS | _INGESTERS | {"share"}
MAY = {
    OPEN: _KNOWN | _STRANGERS,
    KNOWN: _KNOWN,
    READ: _READERS,
    SHOWN: _READERS | {"share"},
    INGEST: _INGESTERS | _ADMINS,
    OPERATE: _OPERATORS,
    ADMIN: _ADMINS,
}
TABLE = """
GET /healthz open                                       GET /readyz open
GET /metrics read                                       GET /api/v1/health read
GET /api/v1/service read                                GET /api/v1/me known
POST /api/v1/reports ingest                             POST /api/v1/import ingest
GET /api/v1/runs read                                   GET /api/v1/facets read
GET /api/v1/runs/{run} shown                            PATCH /api/v1/runs/{run} operate
DELETE /api/v1/runs/{run} admin                         GET /api/v1/runs/{run}/events shown
GET /api/v1/runs/{run}/hooks shown                      GET /api/v1/runs/{run}/changes shown
GET /api/v1/changes read                                GET /api/v1/runs/{run}/export shown
GET /api/v1/runs/{run}/texts shown                      GET /api/v1/runs/{run}/texts/steps shown
GET /api/v1/runs/{run}/texts/{number} shown             GET /api/v1/runs/{run}/texts/{number}/same-prompt shown
GET /api/v1/runs/{run}/metrics shown                    GET /api/v1/runs/{run}/series shown
GET /api/v1/runs/{run}/extremes shown                   GET /api/v1/runs/{run}/histograms shown
GET /api/v1/runs/{run}/transitions shown                GET /api/v1/runs/{run}/incidents shown
GET /api/v1/runs/{run}/incidents/{cause} shown          GET /api/v1/runs/{run}/incidents/{cause}/post-mortem shown
GET /api/v1/runs/{run}/overview shown                  GET /api/v1/runs/{run}/tails shown
GET /api/v1/runs/{run}/judged shown                     GET /api/v1/runs/{run}/rules shown
GET /api/v1/runs/{run}/steering shown                   GET /api/v1/runs/{run}/shares operate
POST /api/v1/runs/{run}/shares operate                  POST /api/v1/runs/{run}/commands operate
GET /api/v1/compare read                                GET /api/v1/compare/settings read
GET /api/v1/alerts read                                 POST /api/v1/alerts/{alert}/acknowledge operate
POST /api/v1/alerts/{alert}/unacknowledge operate       POST /api/v1/alerts/{alert}/escalate operate
POST /api/v1/alerts/{alert}/silence operate             GET /api/v1/incidents read
GET /api/v1/rules read                                  GET /api/v1/rules/edited read
GET /api/v1/rules/edited/versions read                  PUT /api/v1/rules/edited admin
POST /api/v1/rules/check read                           GET /api/v1/rules/status read
GET /api/v1/rules/standing read                         GET /api/v1/rules/{rule}/source read
POST /api/v1/rules/{rule}/test operate                  POST /api/v1/rules/backtest read
POST /api/v1/replay read                                GET /api/v1/commands read
POST /api/v1/commands/{command}/approve operate         POST /api/v1/commands/{command}/deny operate
GET /api/v1/commands/{command} read                     GET /api/v1/policies read
GET /api/v1/commands/{command}/effect read
PUT /api/v1/policies admin                              DELETE /api/v1/policies admin
GET /api/v1/audit read                                  GET /api/v1/audit/check read
GET /api/v1/audit/export read                           GET /api/v1/channels read
GET /api/v1/channels/status read                        POST /api/v1/channels admin
GET /api/v1/channels/{name} admin                       PUT /api/v1/channels/{name} admin
DELETE /api/v1/channels/{name} admin                    POST /api/v1/channels/{name}/test operate
GET /api/v1/deliveries read                             GET /api/v1/deliveries/{delivery}/sends read
GET /api/v1/steering read                               PUT /api/v1/steering operate
DELETE /api/v1/steering operate                         GET /api/v1/silences read
POST /api/v1/silences operate                           POST /api/v1/silences/{silence}/end operate
GET /api/v1/retention read                              PUT /api/v1/retention admin
DELETE /api/v1/retention admin                          GET /api/v1/tokens admin
POST /api/v1/tokens admin                               POST /api/v1/tokens/{token}/rotate admin
DELETE /api/v1/tokens/{token} admin                     GET /api/v1/users admin
POST /api/v1/users admin                                PATCH /api/v1/users/{user} admin
POST /api/v1/users/{user}/invite admin                  DELETE /api/v1/users/{user} admin
GET /api/v1/sessions read                               DELETE /api/v1/sessions read
DELETE /api/v1/sessions/{session} read                  GET /api/v1/shares operate
DELETE /api/v1/shares/{share} operate                   GET /metrics/runs read
"""
PROXY_SECRET = "a secret that a proxy shows, of some length"
ROWS = {(method, path): level for method, path, level in re.findall(r"([A-Z]+) (/\S+) (\w+)", TABLE)}


@pytest.fixture(scope="module")
def app(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    folder = tmp_path_factory.mktemp("matrix")
    shutil.copyfile(sqlite_template, folder / "rlvitals.db")
    proxy = {"proxy_user_header": "x-forwarded-user", "proxy_secret": PROXY_SECRET}
    made = create_app(Settings(home=folder, data=folder, **proxy), with_worker=False)
    made.dependency_overrides[utc_now] = lambda: NOW
    with TestClient(made, base_url=BASE_URL):
        with made.state.store.begin() as conn:
            plant_run(conn, "r1")
            plant_run(conn, "r2")
        yield made


@pytest.fixture(scope="module")
def everybody(app: FastAPI) -> dict[str, TestClient]:
    """By the name in `MAY`: tokens as bearers, people and the shared link by cookie."""
    store: Store = app.state.store
    made = {"nobody": TestClient(app, base_url=BASE_URL, raise_server_exceptions=False)}
    named = {"x-forwarded-user": "admin", SECRET_HEADER: PROXY_SECRET}
    made["named by a proxy"] = _browser(app, named)
    for scope in ("read", "ingest", "ingest:p", "ingest:q", "operate", "admin"):
        secret = tokens.make_token()
        with store.begin() as conn:
            tokens.register(conn, secret, scope, [scope], NOW)
        made[scope] = _browser(app, {"authorization": f"Bearer {secret}"})
    for role in Role:
        with store.begin() as conn:
            user = users.add(conn, role.value, role, "test", NOW)
        name = "admin session" if role is Role.ADMIN else role.value
        made[name] = _browser(app, _cookie(store, AccessKind.USER, user.id))
    with store.begin() as conn:
        _, share = shares.make(conn, "r1", "", "test", NOW, NOW + timedelta(hours=1))
    made["share"] = _browser(app, _cookie(store, AccessKind.SHARE, share.id, SHARE_COOKIE))
    return made


def _browser(app: FastAPI, headers: dict[str, str]) -> TestClient:
    return TestClient(
        app, base_url=BASE_URL, headers=headers | {"origin": BASE_URL}, raise_server_exceptions=False
    )


def _cookie(store: Store, kind: AccessKind, subject: str, name: str = COOKIE) -> dict[str, str]:
    with store.begin() as conn:
        secret, _ = sessions.start(conn, kind, subject, "test", NOW, NOW + timedelta(hours=1))
    return {"cookie": f"{name}={secret}"}


def _filled(method: str, path: str, run: str = "r1") -> str:
    """What changes something is asked about a run that is not there."""
    path = path.replace("{run}", run if method == "GET" else "none").replace("{number}", "1")
    return re.sub(r"\{\w+\}", "none", path)


def test_every_endpoint_has_a_row_and_every_row_an_endpoint(app: FastAPI) -> None:
    documented = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert documented == ROWS.keys()


def test_everybody_is_let_in_or_refused_as_the_table_says(app: FastAPI, everybody: dict[str, TestClient]) -> None:
    told = asyncio.run(_ask_all(app, {name: dict(client.headers) for name, client in everybody.items()}))
    wrong = []
    for (method, path), level in ROWS.items():
        for name in everybody:
            status = told[method, path, name]
            refusals = {401} if name in _STRANGERS else {403}
            as_told = status not in (401, 403) if name in MAY[level] else status in refusals
            if not as_told or status >= 500:
                wrong.append(f"{method} {path} asked by {name}: {status}, the table says {level}")
    assert not wrong, "\n".join(wrong)


async def _ask_all(app: FastAPI, headers: dict[str, dict[str, str]]) -> dict[tuple[str, str, str], int]:
    told = {}
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as client:
        for method, path in ROWS:
            options: dict[str, Any] = {"json": {}} if method in ("POST", "PUT", "PATCH") else {}
            for name, own in headers.items():
                answer = await client.request(method, _filled(method, path), headers=own, **options)
                told[method, path, name] = answer.status_code
    return told


def test_a_shared_link_shows_no_other_run_and_no_list_over_runs(everybody: dict[str, TestClient]) -> None:
    share = everybody["share"]
    for (method, path), level in ROWS.items():
        if level == SHOWN:
            assert share.request(method, _filled(method, path, "r2")).status_code == 403, path
    for listed in ("/api/v1/alerts", "/api/v1/commands"):
        asked = {query: share.get(f"{listed}{query}").status_code for query in ("?run=r1", "", "?run=r2")}
        assert asked == {"?run=r1": 200, "": 403, "?run=r2": 403}
        assert share.get(f"{listed}?run=r2&run=r1").status_code == 403


@pytest.mark.parametrize(
    ("who", "project", "status"),
    [
        *(("ingest:p", "p", 200), ("ingest:p", "q", 403), ("ingest:q", "p", 403), ("ingest", "q", 200)),
        *(("admin", "q", 200), ("operate", "p", 403), ("viewer", "p", 403), ("share", "p", 403)),
    ],
)
def test_reports_go_to_the_projects_of_their_token(
    everybody: dict[str, TestClient], who: str, project: str, status: int
) -> None:
    run = {"id": f"new-{project}", "project": project}
    body = {"run": run, "attempt": "a1", "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]]}
    assert everybody[who].post("/api/v1/reports", json=body).status_code == status
