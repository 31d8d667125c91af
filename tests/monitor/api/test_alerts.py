from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, batch, step

QUIET = {"kl.pull_ratio": 0.1, "kl.coef": 0.4}
PULL = {"kl.pull_ratio": 4.0, "kl.coef": 0.4}
RUN = [QUIET] * 6 + [PULL] * 3 + [QUIET] * 5 + [{"policy.loss": math.nan}]


@pytest.fixture
def judge(app: FastAPI, client: TestClient) -> Callable[..., None]:
    """Stores steps of a run and judges them."""

    def run(
        rows: list[Mapping[str, float]], attempt: str = "a1", missing: Mapping[str, str] | None = None
    ) -> None:
        reports = [step(n, n, dict(row), missing=missing or {}) for n, row in enumerate(rows, start=1)]
        with app.state.store.begin() as connection:
            store_batch(connection, batch(*reports, attempt=attempt, info=RunInfo(id="r1")), NOW)
        Worker(app.state.store).tick(NOW)

    return run


def test_alerts_come_newest_first_with_their_numbers(client: TestClient, judge: Callable[..., None]) -> None:
    judge(RUN)
    page = client.get("/api/v1/alerts", params={"run": "r1"}).json()
    assert [(a["rule"], a["state"], a["since_step"]) for a in page["items"]] == [
        ("nonfinite", "firing", 15),
        ("kl_pull_dominates", "resolved", 7),
    ]
    assert page["items"][0]["value"] == "NaN"
    assert page["items"][0]["threshold"] is None
    assert (page["items"][1]["value"], page["items"][1]["threshold"]) == (4.0, 1.0)


def test_alerts_are_chosen_by_state_and_paged(client: TestClient, judge: Callable[..., None]) -> None:
    judge(RUN)
    firing = client.get("/api/v1/alerts", params={"state": "firing"}).json()["items"]
    assert [a["rule"] for a in firing] == ["nonfinite"]
    first = client.get("/api/v1/alerts", params={"limit": 1}).json()
    second = client.get("/api/v1/alerts", params={"limit": 1, "cursor": first["next"]}).json()
    assert [p["items"][0]["rule"] for p in (first, second)] == ["nonfinite", "kl_pull_dominates"]
    assert second["next"] == ""
    for params in ({"state": "burning"}, {"cursor": "made-up"}, {"limit": 0}):
        assert client.get("/api/v1/alerts", params=params).status_code == 422, params


def test_transitions_come_in_order(client: TestClient, judge: Callable[..., None]) -> None:
    judge(RUN)
    found = client.get("/api/v1/runs/r1/transitions").json()
    assert [(t["alert"]["rule"], t["before"], t["after"], t["step"]) for t in found] == [
        ("kl_pull_dominates", "inactive", "firing", 8),
        ("kl_pull_dominates", "firing", "resolved", 14),
        ("nonfinite", "inactive", "firing", 15),
    ]
    assert client.get("/api/v1/runs/none/transitions").status_code == 404


def test_transitions_of_one_attempt(client: TestClient, judge: Callable[..., None]) -> None:
    judge(RUN)
    judge(RUN, attempt="a2")
    found = client.get("/api/v1/runs/r1/transitions", params={"attempt": "a2"}).json()
    assert {t["alert"]["attempt"] for t in found} == {"a2"}
    assert client.get("/api/v1/runs/r1/transitions", params={"attempt": "a9"}).status_code == 404


def test_an_alert_is_acknowledged_by_name_once(
    client: TestClient, judge: Callable[..., None], token_for: Callable[..., dict[str, str]]
) -> None:
    judge(RUN)
    alert = client.get("/api/v1/alerts").json()["items"][0]["id"]
    path = f"/api/v1/alerts/{alert}/acknowledge"
    assert client.post(path, json={"by": "ada"}, headers=token_for("read")).status_code == 403
    assert client.post(path, json={"by": "ada"}, headers=token_for("operate")).json()["acknowledged_by"] == "ada"
    assert client.post(path, json={"by": "bob"}).json()["acknowledged_by"] == "ada"
    assert client.post("/api/v1/alerts/none/acknowledge", json={}).status_code == 404


def test_without_a_name_the_token_s_is_noted_and_strange_names_are_made_safe(
    client: TestClient, judge: Callable[..., None], token_for: Callable[..., dict[str, str]]
) -> None:
    judge(RUN)
    first, second = (a["id"] for a in client.get("/api/v1/alerts").json()["items"])
    named = client.post(
        f"/api/v1/alerts/{first}/acknowledge", json={}, headers=token_for("operate", name="night shift")
    )
    assert named.json()["acknowledged_by"] == "night shift"
    strange = client.post(f"/api/v1/alerts/{second}/acknowledge", json={"by": "a\u0000b"})
    assert strange.json()["acknowledged_by"] == "a\ufffdb"
    assert client.post(f"/api/v1/alerts/{second}/acknowledge", json={"by": "x" * 200}).status_code == 422


def test_nobody_reads_alerts_without_a_token(stranger: TestClient) -> None:
    for path in ("/api/v1/alerts", "/api/v1/runs/r1/transitions", "/api/v1/runs/r1/rules", "/api/v1/rules"):
        assert stranger.get(path).status_code == 401, path


def test_the_rules_of_a_run_say_which_are_dormant_and_why(client: TestClient, judge: Callable[..., None]) -> None:
    judge(
        [{"reward.mean": 0.5, "policy.loss": 0.1}] * 3, missing={"kl.pull_ratio": "beta is 0: no reference model"}
    )
    found = {(r["rule"], r["severity"]): r for r in client.get("/api/v1/runs/r1/rules").json()}
    pull = found["kl_pull_dominates", "warning"]
    assert (pull["dormant"], pull["truth"]) == (True, "unknown")
    assert pull["reason"] == "kl.pull_ratio: beta is 0: no reference model"
    finite = found["nonfinite", "critical"]
    assert (finite["dormant"], finite["truth"]) == (False, "inactive")
    assert client.get("/api/v1/runs/none/rules").status_code == 404


def test_the_rules_of_a_run_show_today_s_numbers(client: TestClient, judge: Callable[..., None]) -> None:
    judge([QUIET] * 6 + [{"kl.pull_ratio": math.inf}])
    found = {r["rule"]: r for r in client.get("/api/v1/runs/r1/rules").json()}
    assert (found["kl_pull_dominates"]["value"], found["kl_pull_dominates"]["threshold"]) == ("Infinity", 1.0)


def test_the_catalogue_is_listed(client: TestClient) -> None:
    found = client.get("/api/v1/rules").json()
    assert len(found) >= 40
    assert {"rule", "severity", "expr", "summary", "metrics"} <= set(found[0])
