"""What Prometheus scrapes: the service's own numbers, and the live runs' latest values."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from rlvitals_monitor.telemetry import Telemetry
from tests.monitor.batches import NOW_S, after

HOSTILE = 'a"b\\c\n<script>'


def report(client: TestClient, run: str = "r1", seq: int = 1, **values: Any) -> Any:
    body = {
        "run": {"id": run, "project": HOSTILE.replace("\n", "")},
        "attempt": "a",
        "names": list(values),
        "rows": [[seq, seq, NOW_S, *values.values()]],
    }
    answer = client.post("/api/v1/reports", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names) → value, as a Prometheus reads it."""
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_four_kinds_of_number_are_four_things_to_prometheus_too(client: TestClient) -> None:
    report(client, a="NaN", b="Infinity", c="-Infinity", d=None, e=0.25)
    told = samples(client.get("/metrics/runs").text)
    values = {key[1]: repr(value) for key, value in told.items() if key[0] == "rlvitals_run_value"}
    assert values == {"a": "nan", "b": "inf", "c": "-inf", "e": "0.25"}


def test_the_newest_value_of_each_metric_is_told_with_the_runs_own_words_escaped(client: TestClient) -> None:
    report(client, seq=1, loss=1.0, reward=5.0)
    report(client, seq=2, loss=2.0)
    report(client, run="r2", loss=7.0)
    told = samples(client.get("/metrics/runs").text)
    project = HOSTILE.replace("\n", "")
    assert told["rlvitals_run_value", "loss", project, "r1"] == 2.0
    assert told["rlvitals_run_value", "reward", project, "r1"] == 5.0
    assert told["rlvitals_run_value", "loss", project, "r2"] == 7.0
    assert told["rlvitals_run_step", project, "r1"] == 2
    assert told["rlvitals_run_alerts_firing", project, "r1"] == 0


def test_metrics_and_projects_are_chosen_and_a_run_that_is_silent_for_long_is_left_out(
    client: TestClient, set_clock: Callable[[datetime], None]
) -> None:
    report(client, loss=1.0, reward=5.0)
    chosen = samples(client.get("/metrics/runs?metric=loss").text)
    assert [key[1] for key in chosen if key[0] == "rlvitals_run_value"] == ["loss"]
    assert client.get("/metrics/runs?project=other").text.count("rlvitals_run_value{") == 0
    set_clock(after(16 * 60))
    assert "r1" not in client.get("/metrics/runs").text
    assert "r1" in client.get("/metrics/runs?minutes=60").text


def test_a_stranger_is_told_nothing(stranger: TestClient) -> None:
    for path in ("/metrics", "/metrics/runs"):
        assert stranger.get(path).status_code == 401


def test_queues_size_and_refusals_by_reason_are_told(client: TestClient, app: FastAPI) -> None:
    report(client, loss="much")
    report(client, seq=2, loss=1.0)
    told = samples(client.get("/metrics").text)
    assert told["rlvitals_ingest_refused_records_total", "metric"] == 1
    assert told["rlvitals_queue_waiting", "judging"] == 1
    assert told["rlvitals_queue_waiting", "messages"] == 0
    assert told["rlvitals_database_bytes",] > 0
    assert told["rlvitals_runs",] == 1
    assert told["rlvitals_ingest_held_bytes",] == 0


def test_the_worker_tells_how_long_its_work_takes_and_no_name_of_a_run() -> None:
    telemetry = Telemetry()
    for work in ("judging run r1", "judging run r2", "steering", "routing x17"):
        telemetry.note_work(work, 0.01, work != "steering")
    told = samples(telemetry.render().decode())
    assert told["rlvitals_worker_seconds_count", "judging"] == 2
    assert told["rlvitals_worker_failures_total", "steering"] == 1
    assert not [key for key in told if "r1" in key or "routing x17" in key]
