"""How the service says that it fares, on both databases."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.wire import to_wire
from rlvitals_monitor.store import commands
from tests.monitor.batches import NOW, after, batch, step
from tests.monitor.planted import a_command

Headers = Callable[..., dict[str, str]]


def report(client: TestClient, values: dict[str, float], seq: int = 1) -> int:
    return client.post("/api/v1/reports", json=to_wire(batch(step(seq, seq, values)))).status_code


def queues(client: TestClient) -> dict[str, int]:
    return {q["name"]: q["waiting"] for q in client.get("/api/v1/service").json()["queues"]}


def test_an_empty_service_has_a_size_and_nothing_that_waits(client: TestClient) -> None:
    told = client.get("/api/v1/service").json()
    assert told["database"]["size_bytes"] > 10_000
    assert told["database"]["runs"] == 0
    assert told["role"] == "all"
    assert [part["name"] for part in told["parts"]] == ["database"]
    assert (told["stored"], told["dropped"], told["lag_s"]) == (0, {}, None)
    assert {q["name"]: (q["waiting"], q["since"]) for q in told["queues"]} == {
        "judging": (0, None),
        "messages": (0, None),
        "decisions": (0, None),
    }


@pytest.mark.parametrize("value", [1.5, math.nan, math.inf, -math.inf])
def test_what_was_stored_and_waits_for_the_rules_is_counted_whatever_its_value(
    client: TestClient, value: float
) -> None:
    assert report(client, {"reward.mean": value}) == 200
    told = client.get("/api/v1/service").json()
    assert (told["stored"], told["database"]["runs"]) == (1, 1)
    assert queues(client)["judging"] == 1


def test_a_step_without_a_value_counts_as_a_record_too(client: TestClient) -> None:
    assert report(client, {}) == 200
    assert client.get("/api/v1/service").json()["stored"] == 1


def test_a_deleted_run_waits_for_nothing(client: TestClient) -> None:
    report(client, {"reward.mean": 1.0})
    assert client.delete("/api/v1/runs/r1").status_code == 200
    assert queues(client)["judging"] == 0
    assert client.get("/api/v1/service").json()["database"]["runs"] == 0


def test_only_where_the_file_is_here_the_disk_is_told(app: FastAPI, client: TestClient) -> None:
    database = client.get("/api/v1/service").json()["database"]
    assert database["kind"] == ("sqlite" if app.state.store.is_sqlite else "postgresql")
    assert (database["free_bytes"] is not None) == app.state.store.is_sqlite


def test_a_proposal_waits_for_people_until_it_expires(app: FastAPI, client: TestClient) -> None:
    report(client, {"reward.mean": 1.0})
    with app.state.store.begin() as conn:
        commands.add(conn, a_command(id="c1", created_at=NOW, expires_at=after(600)))
        commands.add(conn, a_command(id="c2", created_at=NOW, expires_at=NOW))
    (waiting,) = [q for q in client.get("/api/v1/service").json()["queues"] if q["name"] == "decisions"]
    assert waiting == {"name": "decisions", "waiting": 1, "since": "2026-11-29T12:00:00Z"}


def test_who_may_read_may_know_and_nobody_else(
    client: TestClient, stranger: TestClient, token_for: Headers
) -> None:
    assert stranger.get("/api/v1/service").status_code == 401
    assert stranger.get("/api/v1/service", headers=token_for("ingest")).status_code == 403
    assert stranger.get("/api/v1/service", headers=token_for("read")).status_code == 200
