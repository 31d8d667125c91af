"""A run's numbers as a file: exact, and never all in memory."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import datetime, timedelta

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.store import frames, horizon
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.batches import NOW, batch, step

TINY = 5e-324
ROWS: dict[int, dict[str, float]] = {
    1: {"loss": 0.1, "kl.mean": math.nan},
    2: {"loss": math.inf},
    4: {"loss": -math.inf, "kl.mean": TINY, "=cmd|' /C calc'!A0": 1.0, "step": 7.0},
    90_000_000: {"loss": 1e308},
}


@pytest.fixture
def run(app: FastAPI, client: TestClient) -> TestClient:
    reports = [step(seq, number, values) for seq, (number, values) in enumerate(ROWS.items(), start=1)]
    evaluation = step(9, 3, {"eval.reward": 0.25, "eval.loss": math.nan})
    with app.state.store.begin() as connection:
        store_batch(connection, batch(*reports, evaluation), NOW)
    return client


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_tells_missing_from_nan_and_gives_back_the_very_same_doubles(run: TestClient) -> None:
    answer = run.get("/api/v1/runs/r1/export?metric=loss&metric=kl.mean")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="r1-a1.csv"'
    found = rows(answer.text)
    assert [(row["step"], row["loss"], row["kl.mean"]) for row in found if row["step"] != "3"] == [
        ("1", "0.1", "NaN"), ("2", "Infinity", ""), ("4", "-Infinity", "5e-324"), ("90000000", "1e+308", ""),
    ]  # fmt: skip
    assert datetime.fromisoformat(found[0]["time"]) == NOW + timedelta(seconds=1)


def test_a_name_that_is_a_formula_or_a_columns_own_harms_nobody(run: TestClient) -> None:
    found = rows(run.get("/api/v1/runs/r1/export").text)
    (there,) = [row for row in found if row["step"] == "4"]
    assert there["'=cmd|' /C calc'!A0"] == "1.0"
    assert there["values.step"] == "7.0"


def test_parquet_tells_missing_from_nan_and_says_what_it_is(run: TestClient) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="NO PARQUET TESTS: pyarrow is not installed")
    answer = run.get("/api/v1/runs/r1/export?format=parquet&metric=loss&metric=kl.mean&to=4")
    table = parquet.read_table(io.BytesIO(answer.content))
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    at = {number: place for place, number in enumerate(columns["step"])}
    assert columns["loss"][at[2]] == math.inf
    assert columns["loss"][at[4]] == -math.inf
    assert columns["kl.mean"][at[2]] is None
    assert math.isnan(columns["kl.mean"][at[1]])
    assert columns["kl.mean"][at[4]] == TINY
    assert columns["time"][at[1]] == NOW + timedelta(seconds=1)
    assert json.loads(table.schema.metadata[b"rlvitals"]) == {"run": "r1", "project": "default", "attempt": "a1"}
    assert table.schema.field("kl.mean").metadata[b"metric"] == b"kl.mean"


def test_it_is_read_in_windows_that_a_gap_of_any_length_does_not_hold_up(
    run: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run.get("/api/v1/runs/r1/export").text
    monkeypatch.setattr(frames, "CELLS_A_WINDOW", 6)
    reads = []
    monkeypatch.setattr(frames.deletion, "refuse_deleted", lambda *_: reads.append(1))
    assert run.get("/api/v1/runs/r1/export").text == whole
    assert 3 < len(reads) < 40


def test_only_what_was_asked_for_comes_and_an_unknown_metric_is_an_empty_column(run: TestClient) -> None:
    found = rows(run.get("/api/v1/runs/r1/export?metric=nobody&from=2&to=2").text)
    assert [(row["step"], row["nobody"]) for row in found] == [("2", "")]
    assert run.get("/api/v1/runs/r1/export?attempt=none").status_code == 404
    assert run.get("/api/v1/runs/r1/export?format=xlsx").status_code == 422
    assert run.get("/api/v1/runs/nobody/export").status_code == 404


def test_steps_whose_points_came_of_age_are_no_rows_of_missing(run: TestClient, app: FastAPI) -> None:
    store: Store = app.state.store
    with store.begin() as connection:
        horizon.move(connection, 1, 4)
        connection.exec_driver_sql("DELETE FROM points WHERE step < 4")
    answer = run.get("/api/v1/runs/r1/export")
    assert [row["step"] for row in rows(answer.text)] == ["4", "90000000"]
    assert answer.headers["RLVitals-Raw-From"] == "4"


def test_a_run_without_a_step_is_a_table_without_a_row(app: FastAPI, client: TestClient) -> None:
    with app.state.store.begin() as connection:
        store_batch(connection, batch(), NOW)
    assert client.get("/api/v1/runs/r1/export").text == "step,time\r\n"
    assert client.get("/api/v1/runs/r1/export?format=parquet").content.startswith(b"PAR1")
