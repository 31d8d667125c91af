from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from rlvitals.contract.report import Event, EventKind, Extreme, RunInfo, Text
from rlvitals_monitor.store import alerts
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.tables import attempts
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW, NOW_S, batch, step
from tests.monitor.planted import a_transition, an_alert, plant_run, plant_transition

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
        "forced_loss_tokens from step 2: policy.forced_loss_tokens = 16 (fires above 0), "
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


EVIL = "</pre><script>alert(1)</script> ``` \u202e@everyone [x](http://evil)"


@pytest.fixture
def garbled(app: FastAPI, client: TestClient) -> None:
    """A run whose token at step 2 is named by its evidence, with completions of hostile text."""
    forced = Extreme(value=16.0, token_id=151645, token="<|im_end|>", position=12, sample=3, masked=False)
    texts = [
        Text(seq=30 + sample, step=2, sample=sample, prompt=EVIL, completion=f"{EVIL} {sample}", reward=reward)
        for sample, reward in ((1, math.nan), (2, 0.5), (3, 1.0), (4, -math.inf))
    ]
    steps = [
        step(1, 1, {"policy.forced_loss_tokens": 0.0}),
        step(2, 2, {"policy.forced_loss_tokens": 16.0}, extremes={"policy.forced_loss_tokens": forced}),
    ]
    with app.state.store.begin() as connection:
        told = RunInfo(id="r1", name=EVIL, framework="trl 1.16")
        store_batch(connection, batch(*steps, info=told, texts=tuple(texts)), NOW)
    Worker(app.state.store).tick(NOW)


@pytest.mark.usefixtures("garbled")
def test_the_guilty_texts_are_the_one_that_the_evidence_names_and_then_the_worst(client: TestClient) -> None:
    story = client.get("/api/v1/runs/r1/incidents/special_token_fault").json()
    assert [(t["sample"], t["reward"]) for t in story["texts"]] == [
        (3, 1.0),
        (1, "NaN"),
        (4, "-Infinity"),
        (2, 0.5),
    ]
    assert story["named"] == [story["texts"][0]["number"]]
    assert [a["rule"] for a in story["alerts"]] == ["forced_loss_tokens"]
    assert {t["after"] for t in story["transitions"]} >= {"firing"}
    assert story["axis"]["first"] < 2 < story["axis"]["last"]


@pytest.mark.usefixtures("garbled")
@pytest.mark.parametrize(("form", "media"), [("md", "text/markdown"), ("html", "text/html")])
def test_a_post_mortem_is_a_file_in_which_nothing_that_a_run_said_acts(
    client: TestClient, form: str, media: str
) -> None:
    answer = client.get("/api/v1/runs/r1/incidents/special_token_fault/post-mortem", params={"form": form})
    assert answer.headers["content-type"].startswith(media)
    assert f"post-mortem-r1-special_token_fault.{form}" in answer.headers["content-disposition"]
    assert "alert(1)" in answer.text, "the evidence is there"
    assert "\u202e" not in answer.text
    if form == "html":
        assert "<script" not in answer.text
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert not re.search(r'(?:src|href)="(?!data:)', answer.text), "it needs nothing else"
        assert 'src="data:image/png' in answer.text
    else:
        outside = re.sub(r"^(`{3,})\n.*\n\1$", "", answer.text, flags=re.M)
        assert "<script" not in outside
        assert "](http" not in outside
        assert "named by the evidence" in outside


@pytest.mark.usefixtures("sick")
def test_a_story_tells_the_way_back_and_the_order_of_onset(client: TestClient) -> None:
    story = client.get("/api/v1/runs/r1/incidents/nan_inf").json()
    onsets = [alert["fired_step"] for alert in story["alerts"]]
    assert sorted(onsets) == onsets
    assert [e["step"] for e in story["checkpoints"]] == [4, 8, 12]
    assert story["incident"]["since_step"] == 10
    text = client.get("/api/v1/runs/r1/incidents/nan_inf/post-mortem").text
    assert "| Last healthy checkpoint | step 8, out/8 |" in text
    assert "gradient.norm NaN" in text
    assert "× NaN" in text


@pytest.mark.usefixtures("sick")
def test_what_was_saved_between_the_onset_of_the_fault_and_its_alert_is_not_healthy(
    app: FastAPI, client: TestClient
) -> None:
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    with app.state.store.begin() as connection:
        found, _ = alerts.page(connection, run="r1")
        number = connection.scalar(select(attempts.c.number))
        for alert in found:
            alerts.save(connection, number, replace(alert, since_step=7))
    assert incident["healthy_checkpoint"] == 8
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    assert incident["healthy_checkpoint"] == 4


@pytest.mark.usefixtures("sick")
def test_open_incidents_of_all_runs_stand_in_one_list_and_one_that_is_seen_says_so(client: TestClient) -> None:
    (incident,) = client.get("/api/v1/incidents").json()
    assert (incident["run"], incident["cause"], incident["unseen"]) == (
        "r1",
        "nan_inf",
        len(incident["alert_ids"]),
    )
    for alert in incident["alert_ids"]:
        client.post(f"/api/v1/alerts/{alert}/acknowledge", json={})
    assert [one["unseen"] for one in client.get("/api/v1/incidents").json()] == [0]


def test_an_alert_that_no_cause_explains_is_an_incident_of_its_own(app: FastAPI, client: TestClient) -> None:
    with app.state.store.begin() as connection:
        plant_run(connection)
        plant_transition(connection, a_transition(an_alert(rule="mine/too_slow", fired_step=120, value=None)))
    (incident,) = client.get("/api/v1/runs/r1/incidents").json()
    assert (incident["cause"], incident["confidence"]) == ("alert:mine.too_slow", "low")
    assert incident["headline"] == "The KL pull is stronger than the policy pull."
    text = client.get("/api/v1/runs/r1/incidents/alert:mine.too_slow/post-mortem").text
    assert "kl.pull_ratio missing, threshold 1" in text, "missing is no NaN"


def test_an_incident_that_is_not_there_is_not_found(app: FastAPI, client: TestClient) -> None:
    with app.state.store.begin() as connection:
        plant_run(connection)
    assert client.get("/api/v1/runs/r1/incidents/nan_inf").status_code == 404
    assert client.get("/api/v1/runs/r1/incidents/nan_inf/post-mortem").status_code == 404
    assert client.get("/api/v1/incidents").json() == []
