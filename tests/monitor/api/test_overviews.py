"""One answer that is all a run's page shows, the same as its parts say one by one."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event

from rlvitals.contract import codec
from rlvitals.contract.overview import RunOverview
from tests.monitor.batches import NOW_S
from tests.monitor.planted import a_transition, an_alert, plant_transition

PARTS = {
    "run": "/runs/r1",
    "metrics": "/runs/r1/metrics",
    "rules": "/runs/r1/rules",
    "incidents": "/runs/r1/incidents",
    "texts": "/runs/r1/texts",
    "hooks": "/runs/r1/hooks",
    "checkpoints": "/runs/r1/events?kind=checkpoint",
    "alerts": "/alerts?run=r1",
    "commands": "/commands?run=r1",
}


def report(client: TestClient, **other: Any) -> None:
    body = {
        "run": {"id": "r1"},
        "attempt": "a1",
        "names": ["reward.mean", "up", "down", "none"],
        "rows": [[1, 1, NOW_S, 0.5, 1, 2, 3], [2, 2, NOW_S, "NaN", "Infinity", "-Infinity", 4]],
        **other,
    }
    answer = client.post("/api/v1/reports", json=body)
    assert (answer.status_code, answer.json()["refused"]) == (200, []), answer.text


def overview(client: TestClient, query: str = "") -> Any:
    answer = client.get(f"/api/v1/runs/r1/overview{query}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_it_says_what_its_parts_say(app: FastAPI, client: TestClient) -> None:
    report(
        client,
        missing={"2": {"kl.k3": "no reference model"}},
        texts=[{"seq": 3, "step": 1, "sample": 0, "completion": "x"}],
        events=[{"seq": 4, "time_s": NOW_S, "kind": "checkpoint", "payload": {"path": "c1"}}],
    )
    with app.state.store.begin() as connection:
        plant_transition(connection, a_transition(an_alert(attempt="a1", fired_step=120)))
    whole = overview(client)
    for name, path in PARTS.items():
        told = client.get(f"/api/v1{path}").json()
        assert whole[name] == (told["items"] if isinstance(told, dict) and "items" in told else told), name
    assert all(whole[name] for name in ("alerts", "rules", "texts", "checkpoints", "incidents"))


def test_nan_both_infinities_and_missing_stay_four_things(client: TestClient) -> None:
    report(client, missing={"2": {"kl.k3": "no reference model"}})
    told = {m.metric: m for m in codec.decode(RunOverview, overview(client)).metrics or ()}
    last = {name: repr(view.last_value) for name, view in told.items()}
    assert last == {"reward.mean": "nan", "up": "inf", "down": "-inf", "none": "4.0", "kl.k3": "None"}
    assert (told["kl.k3"].points, told["kl.k3"].missing_reason) == (0, "no reference model")


def test_without_metrics_it_does_not_look_for_them(app: FastAPI, client: TestClient) -> None:
    report(client)
    asked: list[str] = []
    event.listen(app.state.store.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    assert overview(client, "?metrics=false")["metrics"] is None
    assert not any("rollups" in statement for statement in asked)


def test_an_earlier_attempt_is_shown_with_its_own_metrics(client: TestClient) -> None:
    report(client)
    report(client, attempt="a2", names=["other"], rows=[[1, 1, NOW_S, 1.0]])
    names = {m["metric"] for m in overview(client, "?attempt=a1")["metrics"]}
    assert "reward.mean" in names
    assert {m["metric"] for m in overview(client)["metrics"]} == {"other"}


def test_a_run_that_nobody_reported_is_not_found_at_once(client: TestClient) -> None:
    assert client.get("/api/v1/runs/nobody/overview").status_code == 404
    assert client.get("/api/v1/runs/nobody/tails?metric=m&from=1").status_code == 404
    version = client.get("/api/v1/changes").json()["version"]
    assert client.get(f"/api/v1/runs/nobody/changes?after={version}&wait_s=30").status_code == 404


def test_a_request_has_two_looks_at_the_data_one_for_who_asks(app: FastAPI, client: TestClient) -> None:
    report(client)
    begun: list[object] = []
    event.listen(app.state.store.engine, "begin", lambda *told: begun.append(told))
    client.get("/api/v1/runs/r1/metrics")
    assert len(begun) == 2
