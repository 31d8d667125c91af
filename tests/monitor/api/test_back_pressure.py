"""A service that has too much to do says so, with when to come again, before its memory grows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from rlvitals_monitor import collector
from rlvitals_monitor.errors import TooSlow
from rlvitals_monitor.intake import Intake, IntakeSettings, Room
from tests.monitor.batches import NOW_S

JSON = {"content-type": "application/json"}


def report(client: TestClient, run: str = "r1", values: int = 1, seq: int = 1) -> Any:
    names = [f"m{number}" for number in range(values)]
    body = {"run": {"id": run}, "attempt": "a", "names": names, "rows": [[seq, seq, NOW_S, *[0.5] * values]]}
    return client.post("/api/v1/reports", content=json.dumps(body), headers=JSON)


def check_refusal(answer: Any) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (429, "application/problem+json")
    assert answer.json()["type"] == "urn:rlvitals:problem:too-many"
    assert 1 <= int(answer.headers["retry-after"]) <= 60


def test_a_full_service_refuses_with_when_to_come_again_and_takes_it_then(
    client: TestClient, app: FastAPI
) -> None:
    room = app.state.intake.room = Room(1)
    with room.hold():
        check_refusal(report(client))
    assert report(client).json()["stored"] == 1
    assert room.held == 0


def test_whatever_an_answer_is_the_room_is_given_back(client: TestClient, app: FastAPI) -> None:
    for body in (b"", b"{", b"\x1f\x8b broken", b"[" * 10_000):
        client.post("/api/v1/reports", content=body, headers=JSON)
        client.post("/api/v1/reports", content=body, headers=JSON | {"content-encoding": "gzip"})
    assert report(client).status_code == 200
    assert app.state.intake.room.held == 0


def test_a_run_over_its_quota_waits_and_others_do_not(client: TestClient, app: FastAPI) -> None:
    now = [0.0]
    app.state.intake = Intake(IntakeSettings(run_values_per_minute=60), clock=lambda: now[0])
    assert report(client, values=61).status_code == 200
    refused = report(client, seq=2)
    check_refusal(refused)
    assert "may report 60 values a minute" in refused.json()["detail"]
    assert report(client, "r2").status_code == 200
    now[0] += int(refused.headers["retry-after"])
    assert report(client, seq=2).json()["stored"] == 1


def test_a_tokens_quota_is_over_all_its_runs(
    client: TestClient, app: FastAPI, token_for: Callable[..., dict[str, str]]
) -> None:
    app.state.intake = Intake(IntakeSettings(token_values_per_minute=2), clock=lambda: 0.0)
    assert report(client, "r1", values=2).status_code == 200
    check_refusal(report(client, "r2"))
    client.headers.update(token_for("ingest", name="another"))
    assert report(client, "r2").status_code == 200


def test_what_was_refused_is_counted_by_reason(client: TestClient, app: FastAPI) -> None:
    app.state.intake = Intake(IntakeSettings(run_values_per_minute=1), clock=lambda: 0.0)
    for seq in (1, 2, 3):
        report(client, values=2, seq=seq)
    client.post("/api/v1/reports", content=b"{", headers=JSON)
    told = client.get("/metrics").text
    assert 'rlvitals_ingest_batches_total{answer="too-many"} 2.0' in told
    assert 'rlvitals_ingest_batches_total{answer="unreadable"} 1.0' in told


def test_a_body_that_never_ends_gives_its_place_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "BODY_S", 0.01)
    room = Room(1 << 20)

    async def dripping() -> Any:
        await anyio.sleep(0.005)
        return {"type": "http.request", "body": b" ", "more_body": True}

    async def scenario() -> None:
        head = [(b"content-type", b"application/json")]
        request = Request({"type": "http", "method": "POST", "headers": head, "query_string": b""}, dripping)
        with room.hold() as holding, pytest.raises(TooSlow, match="whole body within"):
            await collector._envelope(request, 1 << 20, holding)

    anyio.run(scenario)
    assert room.held == 0


def test_a_sender_that_leaves_in_the_middle_of_its_body_is_no_error_of_ours() -> None:
    room = Room(1 << 20)

    async def leaving() -> Any:
        return {"type": "http.disconnect"}

    async def scenario() -> None:
        head = [(b"content-type", b"application/json")]
        request = Request({"type": "http", "method": "POST", "headers": head, "query_string": b""}, leaving)
        with room.hold() as holding, pytest.raises(TooSlow, match="has left"):
            await collector._envelope(request, 1 << 20, holding)

    anyio.run(scenario)
    assert room.held == 0


def endless() -> Iterator[bytes]:
    for _ in range(100):
        yield b" " * (1 << 20)


@pytest.mark.parametrize("path", ["/api/v1/silences", "/api/v1/rules/check"])
def test_no_route_reads_a_body_without_end(client: TestClient, path: str) -> None:
    for body in (b"x" * (5 << 20), endless()):
        answer = client.post(path, content=body, headers=JSON)  # type: ignore[arg-type]
        assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": ' + b"9" * 100_000 + b"}"])
def test_json_that_no_reader_can_nest_is_refused_by_every_route(client: TestClient, body: bytes) -> None:
    for path in ("/api/v1/silences", "/api/v1/rules/check", "/api/v1/rules/backtest", "/api/v1/reports"):
        answer = client.post(path, content=body, headers=JSON)
        assert answer.status_code in (400, 422), (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
