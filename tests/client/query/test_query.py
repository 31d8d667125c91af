"""The query client against the real service, on both databases: pages, frames, errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timezone
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract.report import RunInfo, Text
from rlvitals.contract.view import RunState
from rlvitals.query import Deleted, NotThere, Query, Refused, Unavailable, Unreadable
from rlvitals.query import client as module
from rlvitals_monitor.api.deps import utc_now
from rlvitals_monitor.app import create_app
from rlvitals_monitor.errors import BadRequest
from rlvitals_monitor.export import parquet_file
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.ingest import store_batch
from tests.monitor.api.test_export import ROWS
from tests.monitor.batches import NOW, batch, step
from tests.monitor.planted import a_transition, an_alert, plant_transition

BASE = "http://127.0.0.1:8642"


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> FastAPI:
    made = create_app(Settings(home=tmp_path / "home", database_url=database_url), with_worker=False)
    made.dependency_overrides[utc_now] = lambda: NOW
    return made


@pytest.fixture
def http(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url=BASE, raise_server_exceptions=False) as client:
        client.headers["authorization"] = f"Bearer {app.state.local_token}"
        yield client


@pytest.fixture
def query(app: FastAPI, http: TestClient) -> Query:
    """A service with a run that has every kind of number, and five others."""
    reports = [step(seq, number, values) for seq, (number, values) in enumerate(ROWS.items(), start=1)]
    with app.state.store.begin() as connection:
        text = Text(seq=9, step=4, sample=0, prompt="p", completion="<script>\u202e", reward=math.nan)
        store_batch(connection, batch(*reports, texts=(text,), info=RunInfo(id="r1", project="tiny")), NOW)
        for number in range(5):
            store_batch(connection, batch(step(1, 1, {"m": 1.0}), run=f"other-{number}"), NOW)
        plant_transition(connection, a_transition(an_alert(attempt="a1")))
    return Query(http=http)


def test_runs_come_page_by_page_as_the_contracts_own_types(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    assert len({run.id for run in query.runs()}) == 6
    (tiny,) = query.runs(project="tiny")
    assert (tiny.id, tiny.state) == ("r1", RunState.RUNNING)
    assert query.run("r1").attempts[0].id == "a1"


def test_what_stands_beside_the_numbers_is_read_too(query: Query) -> None:
    assert [alert.rule for alert in query.alerts(run="r1")] == ["kl_pull_dominates"]
    assert [change.step for change in query.transitions("r1")] == [120]
    (text,) = query.texts("r1", worst=True)
    assert text.completion == "<script>\u202e"
    assert text.reward is not None
    assert math.isnan(text.reward)
    assert {metric.metric for metric in query.metrics("r1")} >= {"loss", "kl.mean"}
    (series,) = query.series("r1", "loss", limit=10)
    assert series.pos_inf == (2,)
    assert next(query.audit()).what
    assert list(query.commands()) == []
    assert query.get("/runs/r1")["id"] == "r1"


def check_exact(loss: list[float | None], kl: list[float | None]) -> None:
    assert loss == [0.1, math.inf, -math.inf, 1e308]
    assert (kl[1], kl[3]) == (None, None)
    assert kl[0] is not None
    assert math.isnan(kl[0])
    assert kl[2] == 5e-324


@pytest.mark.parametrize("without_parquet", [False, True])
def test_missing_nan_and_infinities_are_apart_in_every_frame(
    query: Query, monkeypatch: pytest.MonkeyPatch, without_parquet: bool
) -> None:
    """Also where the service cannot write Parquet."""

    def refuse() -> None:
        raise BadRequest("no pyarrow", field="format")

    if without_parquet:
        monkeypatch.setattr(parquet_file, "check", refuse)
    table = query.arrow("r1")
    check_exact(table.column("loss").to_pylist(), table.column("kl.mean").to_pylist())
    assert table.column("step").to_pylist() == [1, 2, 4, 90_000_000]
    assert table.column("time")[0].as_py().astimezone(timezone.utc) > NOW
    assert "=cmd|' /C calc'!A0" in table.column_names

    pandas = pytest.importorskip("pandas", reason="NO PANDAS TESTS: it is not installed")
    frame = query.pandas("r1", ["loss", "kl.mean"])
    check_exact(
        *(frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in ("loss", "kl.mean"))
    )
    assert frame["kl.mean"].isna().tolist() == [False, True, False, True]
    assert isinstance(frame, pandas.DataFrame)

    polars = pytest.importorskip("polars", reason="NO POLARS TESTS: it is not installed")
    columns = query.polars("r1", ["loss", "kl.mean"], first=1, last=90_000_000)
    check_exact(columns["loss"].to_list(), columns["kl.mean"].to_list())
    assert isinstance(columns, polars.DataFrame)


def test_a_run_of_any_length_is_saved_to_a_file(query: Query, tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    file.write_text("before")
    assert query.save("r1", file, ["loss"], form="csv") == file.stat().st_size
    assert file.read_text().startswith("step,time,loss")
    with pytest.raises(NotThere):
        query.save("nobody", file)
    assert file.read_text().startswith("step,time,loss")
    assert [path.name for path in tmp_path.glob("run*")] == ["run.csv"]


def test_every_refusal_says_what_to_do(query: Query, http: TestClient) -> None:
    with pytest.raises(NotThere, match="nobody"):
        query.run("nobody")
    with pytest.raises(Unreadable) as wrong:
        query.series("r1", "loss", limit=0)
    assert wrong.value.field == "limit"
    http.delete("/api/v1/runs/other-1")
    with pytest.raises(Deleted, match="deleted by local"):
        query.run("other-1")
    http.headers["authorization"] = "Bearer wrong"
    with pytest.raises(Refused, match="RLVITALS_TOKEN"):
        query.run("r1")


def answering(status: int, headers: dict[str, str] | None = None) -> Query:
    transport = httpx2.MockTransport(lambda request: httpx2.Response(status, headers=headers, text="<html>"))
    return Query(http=httpx2.Client(transport=transport, base_url=BASE))


def test_a_service_that_is_not_there_or_busy_is_told_apart_from_a_wrong_question() -> None:
    with pytest.raises(Unavailable, match="is the service up"):
        Query("http://127.0.0.1:9", token="t", timeout_s=1.0).run("r1")
    with pytest.raises(Unavailable) as busy:
        answering(429, {"retry-after": "7"}).run("r1")
    assert busy.value.retry_after_s == 7.0
    with pytest.raises(Unavailable):
        answering(502).run("r1")
    with pytest.raises(Exception, match="redirects"):
        answering(302, {"location": "http://elsewhere"}).run("r1")
