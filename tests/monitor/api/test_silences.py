"""Silences, maintenance windows and who looks after an alert, over REST, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.store import silences
from tests.monitor.planted import NOW, a_transition, an_alert, later, plant

V1 = "/api/v1"
Tokens = Callable[..., dict[str, str]]


@pytest.fixture(autouse=True)
def fixed_clock(app: FastAPI) -> None:
    app.dependency_overrides[utc_now] = lambda: NOW


@pytest.fixture
def alert(app: FastAPI, client: TestClient) -> str:
    """The id of a firing alert of run r1."""
    plant(app.state.store, a_transition())
    return an_alert().id


def ask(client: TestClient, **body: Any) -> Any:
    return client.post(f"{V1}/silences", json={"match": ["rule=kl_*"], **body})


def audited(client: TestClient) -> list[tuple[str, str]]:
    """What people did, newest first."""
    lines = client.get(f"{V1}/audit").json()["items"]
    return [(line["what"], line["who"]) for line in lines if line["who"] != "service"]


def test_an_open_alert_says_that_it_is_silenced_until_when_and_by_whom(
    client: TestClient, app: FastAPI, alert: str
) -> None:
    def shown() -> Any:
        (one,) = client.get(f"{V1}/alerts").json()["items"]
        return one["silenced"]

    assert shown() is None
    ask(client, match=["rule=another_*"], lasts_s=9000.0)
    ask(client, lasts_s=60.0)
    made = client.post(f"{V1}/alerts/{alert}/silence", json={"lasts_s": 600.0, "why": "<b>known</b>"}).json()
    assert datetime.fromisoformat(shown()["until"]) == later(600)
    assert (shown()["who"], shown()["why"]) == ("local", "<b>known</b>")
    assert client.post(f"{V1}/silences/{made['id']}/end").status_code == 200
    assert datetime.fromisoformat(shown()["until"]) == later(60)
    app.dependency_overrides[utc_now] = lambda: later(61)
    assert shown() is None


def test_a_silence_is_asked_for_listed_ended_and_audited(client: TestClient, app: FastAPI) -> None:
    made = ask(client, lasts_s=3600.0, why="known")
    assert made.status_code == 201
    shown = made.json()
    assert (shown["state"], shown["match"], shown["who"], shown["why"]) == (
        "active",
        ["rule=kl_*"],
        "local",
        "known",
    )
    assert datetime.fromisoformat(shown["now_until"]) == later(3600)
    (listed,) = client.get(f"{V1}/silences", params={"state": "active"}).json()["items"]
    assert listed == shown
    app.dependency_overrides[utc_now] = lambda: later(60)
    ended = client.post(f"{V1}/silences/{shown['id']}/end")
    assert (ended.json()["state"], ended.json()["ended_by"]) == ("ended", "local")
    again = client.post(f"{V1}/silences/{shown['id']}/end")
    assert again.status_code == 409
    assert "by local" in again.json()["detail"]
    assert client.get(f"{V1}/silences", params={"state": "active"}).json()["items"] == []
    assert audited(client) == [("silence ended", "local"), ("silence asked for", "local")]


def test_maintenance_is_planned_ahead_or_comes_again(client: TestClient) -> None:
    once = ask(
        client, purpose="maintenance", starts_at="2026-05-05T08:00:00+02:00", ends_at="2026-05-05T10:00:00+02:00"
    ).json()
    assert (once["state"], once["purpose"]) == ("pending", "maintenance")
    weekly = ask(client, purpose="maintenance", cron="0 22 * * 5", zone="Europe/Berlin", lasts_s=7200.0).json()
    assert (weekly["state"], weekly["cron"], weekly["lasts_s"]) == ("resting", "0 22 * * 5", 7200.0)
    assert datetime.fromisoformat(weekly["next_at"]) == datetime.fromisoformat("2026-05-08T20:00:00+00:00")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "lasts_s"),
    ({"lasts_s": 0.0}, "lasts_s"),
    ({"lasts_s": -1.0}, "lasts_s"),
    ({"lasts_s": "NaN"}, "lasts_s"),
    ({"lasts_s": "Infinity"}, "lasts_s"),
    ({"lasts_s": 1e12}, "lasts_s"),
    ({"lasts_s": 60.0, "match": []}, "match"),
    ({"lasts_s": 60.0, "match": ["everything"]}, "match"),
    ({"lasts_s": 60.0, "why": "x" * 1001}, "why"),
    ({"lasts_s": 60.0, "ends_at": "2026-05-05T08:00:00Z"}, "ends_at"),
    ({"ends_at": "2026-05-04T11:00:00Z"}, "ends_at"),
    ({"ends_at": "2026-05-04T13:00:00"}, "ends_at"),
    ({"ends_at": "9999-12-31T23:59:59-12:00"}, "ends_at"),
    ({"starts_at": "9999-12-31T23:59:59Z", "lasts_s": 60.0}, "starts_at"),
    ({"cron": "0 22 * *", "lasts_s": 60.0}, "cron"),
    ({"cron": "0 22 * * 5", "zone": "Mars", "lasts_s": 60.0}, "zone"),
    ({"cron": "0 22 * * 5", "lasts_s": 1.0}, "lasts_s"),
    ({"cron": "0 22 * * 5"}, "lasts_s"),
]


def test_what_cannot_be_is_refused_by_field(client: TestClient) -> None:
    for body, field in REFUSED:
        answer = ask(client, **body)
        assert answer.status_code == 422, body
        assert answer.json()["field"].startswith(field), body


def test_no_bare_number_beyond_all_bounds_is_a_length(client: TestClient) -> None:
    for number in ("NaN", "Infinity", "-Infinity", "1e400", "null"):
        body = f'{{"match": ["rule=a"], "lasts_s": {number}}}'
        answer = client.post(f"{V1}/silences", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422, number


def test_only_who_may_operate_silences(client: TestClient, alert: str, token_for: Tokens) -> None:
    reader = token_for("read")
    for path, body in (
        ("/silences", {"match": ["rule=a"], "lasts_s": 60.0}),
        (f"/alerts/{alert}/silence", {}),
        (f"/alerts/{alert}/unacknowledge", None),
        ("/silences/s1/end", None),
    ):
        assert client.post(V1 + path, json=body, headers=reader).status_code == 403, path
    assert client.get(f"{V1}/silences", headers=reader).status_code == 200


def test_an_alert_is_silenced_for_an_hour_on_its_run_alone(client: TestClient, alert: str, app: FastAPI) -> None:
    made = client.post(f"{V1}/alerts/{alert}/silence")
    assert made.status_code == 201
    assert made.json()["match"] == ["run=r1", "rule=kl_pull_dominates"]
    assert datetime.fromisoformat(made.json()["ends_at"]) == later(3600)
    with app.state.store.read() as conn:
        (active,) = silences.active(conn, later(10))
    assert active.id == made.json()["id"]
    assert client.post(f"{V1}/alerts/none/silence").status_code == 404


def test_who_looks_after_an_alert_may_give_it_back(client: TestClient, alert: str, token_for: Tokens) -> None:
    client.post(f"{V1}/alerts/{alert}/acknowledge", json={"by": "ada"})
    freed = client.post(f"{V1}/alerts/{alert}/unacknowledge", headers=token_for("operate", name="bob"))
    assert freed.json()["acknowledged_by"] == ""
    assert client.post(f"{V1}/alerts/{alert}/unacknowledge").json()["acknowledged_by"] == ""
    assert client.post(f"{V1}/alerts/{alert}/acknowledge", json={"by": "eve"}).json()["acknowledged_by"] == "eve"
    assert audited(client) == [("acknowledged", "local"), ("unacknowledged", "bob"), ("acknowledged", "local")]
    assert client.post(f"{V1}/alerts/none/unacknowledge").status_code == 404


def test_the_list_is_paged(client: TestClient) -> None:
    ids = [ask(client, lasts_s=60.0).json()["id"] for _ in range(3)]
    first = client.get(f"{V1}/silences", params={"limit": 2}).json()
    second = client.get(f"{V1}/silences", params={"limit": 2, "cursor": first["next"]}).json()
    assert sorted(s["id"] for s in first["items"] + second["items"]) == sorted(ids)
    assert second["next"] == ""
