"""KL policies over the API: chosen, told, taken back, refused by name; and the effect of a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.control.kl_policies import POLICIES
from tests.monitor.control.live import PULLED, LiveRun

V1 = "/api/v1"


@pytest.fixture
def live(app: FastAPI, client: TestClient) -> LiveRun:
    made = LiveRun(store=app.state.store)
    made.rest(PULLED, 2)
    return made


def put(client: TestClient, **body: Any) -> Any:
    return client.put(f"{V1}/steering", json={"scope": "run", "name": "r1", "kl_policy": "guarded", **body})


def test_a_choice_is_told_replaced_and_taken_back_and_all_of_it_audited(client: TestClient, live: LiveRun) -> None:
    assert client.get(f"{V1}/steering").json()["items"] == []
    made = put(client, target=0.3)
    assert made.status_code == 200, made.text
    assert (made.json()["kl_policy"], made.json()["settings"]) == ("guarded", {"target": 0.3})
    assert put(client, kl_policy="article").json()["warning"] == POLICIES["article"].warning
    (listed,) = client.get(f"{V1}/steering").json()["items"]
    assert (listed["kl_policy"], listed["changed_by"]) == ("article", "local")
    gone = client.delete(f"{V1}/steering", params={"scope": "run", "name": "r1"})
    assert (gone.status_code, gone.json()["items"]) == (200, [])
    assert client.delete(f"{V1}/steering", params={"scope": "run", "name": "r1"}).status_code == 404
    lines = client.get(f"{V1}/audit").json()["items"]
    assert [(line["what"], line["detail"]) for line in lines if line["what"].startswith("KL")] == [
        ("KL policy taken back", "run r1"),
        ("KL policy chosen", "run r1: article"),
        ("KL policy chosen", "run r1: guarded, target 0.3"),
    ]


def test_how_a_run_is_steered_is_told_with_its_last_decision(client: TestClient, live: LiveRun) -> None:
    assert client.get(f"{V1}/runs/r1/steering").json()["choice"] is None
    put(client)
    told = client.get(f"{V1}/runs/r1/steering").json()
    assert (told["why"], told["low"], told["high"]) == ("no step yet", 0.05, 0.2)
    live.train(PULLED, 1, 2)
    told = client.get(f"{V1}/runs/r1/steering").json()
    assert (told["step"], told["why"], told["value"], told["stopped"]) == (2, "warm-up", None, "")
    put(client, kl_policy="none")
    assert client.get(f"{V1}/runs/r1/steering").json()["choice"]["kl_policy"] == "none"


def test_a_projects_choice_needs_no_run_yet_and_a_runs_own_does(client: TestClient) -> None:
    assert put(client, scope="project", name="new").status_code == 200
    assert put(client, name="r404").status_code == 404
    assert client.get(f"{V1}/runs/r404/steering").status_code == 404


@pytest.mark.parametrize(
    ("wrong", "field", "status"),
    [
        ({"kl_policy": "best"}, "kl_policy", 422),
        ({"target": -1.0}, "settings", 422),
        ({"target": 0.0}, "settings", 422),
        ({"factor": 3.0}, "settings", 422),
        ({"change_steps": 0}, "settings", 422),
        ({"scope": "rule"}, "scope", 422),
        ({"target": "NaN"}, "target", 422),
    ],
)
def test_a_wrong_choice_is_refused_with_its_field(
    client: TestClient, live: LiveRun, wrong: dict[str, Any], field: str, status: int
) -> None:
    answer = put(client, **wrong)
    assert answer.status_code in (400, status), answer.text
    assert field in answer.text
    assert client.get(f"{V1}/steering").json()["items"] == []


def test_who_may_only_read_chooses_nothing(
    stranger: TestClient, client: TestClient, live: LiveRun, token_for: Callable[..., dict[str, str]]
) -> None:
    body = {"scope": "run", "name": "r1", "kl_policy": "guarded"}
    assert stranger.put(f"{V1}/steering", json=body).status_code == 401
    assert stranger.put(f"{V1}/steering", json=body, headers=token_for("read")).status_code == 403
    assert stranger.get(f"{V1}/steering", headers=token_for("read")).status_code == 200
    assert stranger.put(f"{V1}/steering", json=body, headers=token_for("operate")).status_code == 200


def test_the_effect_of_a_command_is_answered_with_its_signals(client: TestClient, live: LiveRun) -> None:
    live.choose()
    live.rest(PULLED, 46, 2)
    live.train(PULLED, 2, 48)
    live.rest({**PULLED, "kl.pull_ratio": 1.0}, 51, 50)
    (made,) = client.get(f"{V1}/commands").json()["items"]
    told = client.get(f"{V1}/commands/{made['id']}/effect").json()
    assert (told["verdict"], told["step"], told["last"]) == ("helped", 50, 100)
    assert [signal["metric"] for signal in told["signals"]] == ["reward.mean", "kl.capped", "kl.pull_ratio"]
    assert client.get(f"{V1}/commands/nothing/effect").status_code == 404
