"""Deleting a run over REST: who may, what is still seen of it, and what a trainer that still sends is told."""

from __future__ import annotations

import math

from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.wire import to_wire
from rlvitals_monitor.store.audit import verify
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, batch, step
from tests.monitor.planted import a_transition, an_alert, plant_run, plant_transition

NUMBERS = {"kl.mean": math.nan, "reward.mean": math.inf, "loss": -math.inf, "length.mean": 1.5}


def report(client: TestClient, run: str = "r1", seq: int = 1) -> int:
    wire = to_wire(batch(step(seq, seq, NUMBERS), run=run))
    return client.post("/api/v1/reports", json=wire).status_code


def test_a_deleted_run_is_gone_with_who_and_when_and_vanishes_from_the_list(client: TestClient) -> None:
    assert report(client) == report(client, "r2") == 200
    answer = client.delete("/api/v1/runs/r1")
    assert answer.status_code == 200
    assert answer.json() == {"run": "r1", "deleted_at": "2026-11-29T12:00:00Z", "deleted_by": "local"}
    paths = ("", "/series?metric=loss", "/metrics", "/texts", "/events", "/hooks", "/attempts/a1", "/changes")
    known = [f"/api/v1/runs/r1{path}" for path in paths]
    told = {path: client.get(path) for path in known}
    told = {path: one for path, one in told.items() if one.status_code != 404}
    assert len(told) >= 6
    for one in told.values():
        assert one.status_code == 410
        assert one.headers["content-type"] == "application/problem+json"
        assert one.json()["type"] == "urn:rlvitals:problem:deleted"
        assert "deleted by local at 2026-11-29 12:00 UTC" in one.json()["detail"]
    assert [run["id"] for run in client.get("/api/v1/runs").json()["items"]] == ["r2"]


def test_a_trainer_that_still_sends_is_told_and_others_go_on(client: TestClient) -> None:
    assert report(client) == 200
    client.delete("/api/v1/runs/r1")
    assert report(client, seq=2) == 410
    assert report(client, "r2") == 200


def test_to_delete_twice_answers_the_same_and_is_audited_once(client: TestClient, app: FastAPI) -> None:
    report(client)
    answers = [client.delete("/api/v1/runs/r1").json() for _ in range(2)]
    assert answers[0] == answers[1]
    lines = [line for line in client.get("/api/v1/audit").json()["items"] if line["what"] == "run deleted"]
    assert [(line["run"], line["who"]) for line in lines] == [("r1", "local")]
    with app.state.store.read() as connection:
        assert verify(connection).fault == ""


def test_only_an_admin_deletes_and_a_stranger_is_not_even_told_that_it_was(
    client: TestClient, stranger: TestClient, token_for: object
) -> None:
    report(client)
    for scope in ("read", "ingest", "operate"):
        assert stranger.delete("/api/v1/runs/r1", headers=token_for(scope)).status_code == 403  # type: ignore[operator]
    assert client.get("/api/v1/runs/r1").status_code == 200
    client.delete("/api/v1/runs/r1")
    assert stranger.get("/api/v1/runs/r1").status_code == 401
    assert stranger.delete("/api/v1/runs/r1").status_code == 401


def test_what_was_never_there_cannot_be_deleted(client: TestClient) -> None:
    assert client.delete("/api/v1/runs/nobody").status_code == 404


def test_its_alerts_are_in_no_list_and_nobody_judges_it_any_more(client: TestClient, app: FastAPI) -> None:
    store = app.state.store
    with store.begin() as connection:
        plant_run(connection)
        plant_transition(connection, a_transition(an_alert()))
    assert len(client.get("/api/v1/alerts").json()["items"]) == 1
    client.delete("/api/v1/runs/r1")
    for path in ("/api/v1/alerts", "/api/v1/incidents", "/api/v1/commands", "/api/v1/deliveries"):
        told = client.get(path).json()
        assert (told["items"] if isinstance(told, dict) else told) == []
    worker = Worker(store, rules=())
    worker.tick(NOW)
    assert worker.failures == 0
