"""A person has another channel told of an alert."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import alerts
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.runs import find_attempt
from tests.monitor.planted import a_transition, plant, resolved

CHANNELS = """channels:
  - {name: team, kind: slack, url: "https://hooks.slack.com/services/T0/B0/n0b0dysees"}
  - {name: pager, kind: slack, url: "https://hooks.slack.com/services/T0/B0/n0b0dysees"}
"""
PATH = "/api/v1/alerts/a1/escalate"


@pytest.fixture
def settings(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    file = tmp_path / "channels.yaml"
    file.write_text(CHANNELS)
    monkeypatch.setenv("RLVITALS_CHANNELS", str(file))
    return settings


def planted(client: TestClient) -> Store:
    store: Store = client.app.state.store  # type: ignore[attr-defined]
    plant(store, a_transition())
    return store


def test_a_firing_alert_goes_to_the_named_channel_once_and_the_audit_says_who_asked(client: TestClient) -> None:
    planted(client)
    assert client.post(PATH, json={"channel": "pager"}).json()["id"] == "a1"
    (delivery,) = client.get("/api/v1/deliveries").json()["items"]
    assert (delivery["channel"], delivery["state"]) == ("pager", "waiting")
    assert client.post(PATH, json={"channel": "pager"}).status_code == 200, "it still waits, and is hastened"
    assert len(client.get("/api/v1/deliveries").json()["items"]) == 1
    lines = client.get("/api/v1/audit", params={"run": "r1"}).json()["items"]
    assert {(line["who"], line["what"]) for line in lines} == {("local", "escalated")}


def test_nobody_is_told_of_what_is_over_or_looked_after(client: TestClient) -> None:
    store = planted(client)
    client.post("/api/v1/alerts/a1/acknowledge", json={"by": "ada"})
    answer = client.post(PATH, json={"channel": "pager"})
    assert (answer.status_code, "ada looks after" in answer.json()["detail"]) == (409, True)
    with store.begin() as conn:
        alerts.save(conn, find_attempt(conn, "r1")[0], resolved(a_transition()).alert)
    answer = client.post(PATH, json={"channel": "pager"})
    assert (answer.status_code, answer.json()["detail"]) == (409, "kl_pull_dominates does not fire any more")


def test_an_unknown_channel_or_alert_is_told_with_what_there_is(
    client: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    planted(client)
    answer = client.post(PATH, json={"channel": "pagr"})
    assert (answer.status_code, "there are: team, pager" in answer.json()["detail"]) == (404, True)
    assert client.post("/api/v1/alerts/b2/escalate", json={"channel": "pager"}).status_code == 404
    assert client.post(PATH, json={"channel": "pager"}, headers=token_for("read")).status_code == 403
