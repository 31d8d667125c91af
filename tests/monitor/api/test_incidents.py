from __future__ import annotations

import math

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.report import Event, EventKind, Extreme, RunInfo
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, NOW_S, batch, step

ROWS = [{"gradient.norm": 0.5, "length.truncation_rate": 0.1}] * 9 + [
    {"gradient.norm": math.nan, "length.truncation_rate": 1.0}
] * 3


@pytest.fixture
def sick(app: FastAPI, client: TestClient) -> None:
    """A run that breaks at step 10, with checkpoints at 4, 8 and 12, on four devices."""
    steps = [step(n, n, row) for n, row in enumerate(ROWS, 1)]
    saved = [
        Event(seq=20 + at, time_s=NOW_S + at, kind=EventKind.CHECKPOINT, step=at, payload={"folder": f"out/{at}"})
        for at in (4, 8, 12)
    ]
    info = RunInfo(id="r1", config={"world_size": 4})
    with app.state.store.begin() as connection:
        store_batch(connection, batch(*steps, info=info, events=tuple(saved)), NOW)
    Worker(app.state.store).tick(NOW)


@pytest.mark.usefixtures("sick")
def test_a_run_s_alerts_are_told_as_one_cause_with_the_way_back(client: TestClient) -> None:
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    assert (incident["cause"], incident["severity"], incident["onset_step"]) == ("nan_inf", "critical", 10)
    assert set(incident["alerts"]) >= {"nonfinite", "truncation"}
    assert (incident["healthy_checkpoint"], incident["healthy_checkpoint_path"]) == (8, "out/8")
    assert incident["is_open"]
    assert incident["advice"]
    assert incident["gpu_hours"] is not None


def test_the_token_that_an_alert_is_about_is_named_in_the_evidence(app: FastAPI, client: TestClient) -> None:
    forced = Extreme(value=16.0, token_id=151645, token="<|im_end|>", position=12, sample=3, masked=False)
    steps = [
        step(1, 1, {"policy.forced_loss_tokens": 0.0}),
        step(2, 2, {"policy.forced_loss_tokens": 16.0}, extremes={"policy.forced_loss_tokens": forced}),
    ]
    with app.state.store.begin() as connection:
        store_batch(connection, batch(*steps), NOW)
    Worker(app.state.store).tick(NOW)
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    assert incident["cause"] == "special_token_fault"
    assert incident["evidence"] == [
        "forced_loss_tokens from step 2: policy.forced_loss_tokens = 16 against 0, "
        "token id 151645 '<|im_end|>' at position 12 of sample 3 under the loss mask"
    ]


def test_a_token_that_is_no_text_is_shown_as_it_was_reported_and_steers_no_terminal(
    app: FastAPI, client: TestClient
) -> None:
    broken = Extreme(value=9.0, token_id=247, token="\\x99\x1b", position=0, sample=4)
    with app.state.store.begin() as connection:
        forced = {"policy.forced_loss_tokens": 9.0}
        first = step(1, 1, {"policy.forced_loss_tokens": 0.0})
        second = step(2, 2, forced, extremes={"policy.forced_loss_tokens": broken})
        store_batch(connection, batch(first, second), NOW)
    Worker(app.state.store).tick(NOW)
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    assert incident["evidence"][0].endswith(r"token id 247 '\x99\x1b' at position 0 of sample 4")


def test_a_healthy_run_has_none_and_a_run_that_is_not_there_is_not_found(app: FastAPI, client: TestClient) -> None:
    with app.state.store.begin() as connection:
        store_batch(connection, batch(step(1, 1, ROWS[0])), NOW)
    assert client.get("/api/v1/runs/r1/incidents").json() == []
    assert client.get("/api/v1/runs/r9/incidents").status_code == 404


@pytest.mark.usefixtures("sick")
def test_incidents_are_for_people_who_signed_in(stranger: TestClient) -> None:
    assert stranger.get("/api/v1/runs/r1/incidents").status_code == 401
