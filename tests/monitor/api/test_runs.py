from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from rlvitals.contract import codec
from rlvitals.contract.hooks import HooksView
from rlvitals.contract.view import EventView, ExtremeView, HistogramView, MetricView, RunView, SeriesView, TextView
from rlvitals_monitor.live import Live
from tests.monitor.batches import NOW_S, after

SetClock = Callable[[datetime], None]


def report(client: TestClient, run: Any = MappingProxyType({"id": "r1"}), **other: Any) -> None:
    body = {"run": dict(run), "attempt": "a1", "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]], **other}
    assert client.post("/api/v1/reports", json=body).status_code == 200


def test_runs_come_newest_first_page_by_page_and_none_is_shown_twice(
    client: TestClient, set_clock: SetClock
) -> None:
    for number in range(7):
        set_clock(after(number // 2))
        report(client, {"id": f"r{number}", "project": f"p{number % 2}"})
    seen: list[str] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        page = client.get("/api/v1/runs", params={"limit": 3, "cursor": cursor}).json()
        seen += [run["id"] for run in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert (seen, pages) == (["r6", "r5", "r4", "r3", "r2", "r1", "r0"], 3)
    only = client.get("/api/v1/runs", params={"project": "p1"}).json()["items"]
    assert {run["project"] for run in only} == {"p1"}


@pytest.mark.parametrize("cursor", ["x", "!", "W10", "WyIxIiwxXQ", "Wzk5OTk5", "a" * 1_000, "Wy0xLHRydWVd"])
def test_a_cursor_that_is_not_ours_is_a_problem_and_no_crash(client: TestClient, cursor: str) -> None:
    answer = client.get("/api/v1/runs", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["field"]) == (422, "cursor")


def test_every_answer_can_be_decoded_by_the_contract(client: TestClient) -> None:
    report(
        client,
        extremes={"1": {"m": {"value": "Infinity", "token_id": 5}}},
        texts=[{"seq": 2, "step": 1, "sample": 0, "completion": "x"}],
        histograms=[{"seq": 3, "step": 1, "metric": "h", "edges": ["-Infinity", 0], "counts": [1]}],
        events=[{"seq": 4, "time_s": NOW_S, "kind": "note", "payload": {"loss": "NaN"}}],
    )
    run = codec.decode(RunView, client.get("/api/v1/runs/r1").json())
    assert (run.id, run.last_step, run.attempts[0].id) == ("r1", 1, "a1")
    shapes: list[tuple[type[Any], str]] = [
        (MetricView, "metrics"),
        (SeriesView, "series?metric=m"),
        (ExtremeView, "extremes?metric=m"),
        (HistogramView, "histograms?metric=h"),
        (TextView, "texts"),
        (EventView, "events"),
    ]
    for kind, path in shapes:
        items = client.get(f"/api/v1/runs/r1/{path}").json()
        assert items, path
        for item in items:
            codec.decode(kind, item)


def test_a_run_gets_late_and_heals_by_its_next_word(client: TestClient, set_clock: SetClock) -> None:
    report(client)
    assert client.get("/api/v1/runs/r1").json()["state"] == "running"
    set_clock(after(120))
    late = client.get("/api/v1/runs/r1").json()
    assert (late["state"], late["light"]) == ("late", "amber")
    assert late["reason"] == "no word from the trainer for 2 min"
    report(client, rows=[[2, 2, NOW_S, 0.5]])
    assert client.get("/api/v1/runs/r1").json()["state"] == "running"


def test_steps_a_minute_come_from_the_trainers_own_clock(client: TestClient) -> None:
    report(client, rows=[[i, i, NOW_S + 30 * i, 0.5] for i in range(1, 5)])
    assert client.get("/api/v1/runs/r1").json()["steps_per_minute"] == 2.0


def test_the_kl_coefficient_is_the_reported_one_before_the_configured_one(client: TestClient) -> None:
    report(client, run={"id": "r2", "config": {"kl_coef": 0.05}})
    assert client.get("/api/v1/runs/r2").json()["kl_coef"] == 0.05
    report(client, run={"id": "r2"}, names=["kl.coef"], rows=[[2, 2, NOW_S, "NaN"]])
    assert client.get("/api/v1/runs/r2").json()["kl_coef"] == "NaN"
    for config in ({"kl_coef": "much"}, {"kl_coef": True}, {"kl_coef": 10**400}):
        report(client, run={"id": "r3", "config": config})
        assert client.get("/api/v1/runs/r3").json()["kl_coef"] is None


def test_texts_can_be_asked_for_by_step(client: TestClient) -> None:
    texts = [{"seq": 1 + n, "step": n, "sample": 0, "completion": f"c{n}"} for n in range(1, 4)]
    report(client, texts=texts)
    newest = client.get("/api/v1/runs/r1/texts?limit=2").json()
    assert [read["completion"] for read in newest] == ["c3", "c2"]
    assert [read["completion"] for read in client.get("/api/v1/runs/r1/texts?step=1").json()] == ["c1"]


@pytest.mark.parametrize(
    "path",
    [
        "runs/none",
        "runs/none/metrics",
        "runs/none/series?metric=m",
        "runs/none/texts",
        "runs/none/events",
        "runs/none/hooks",
        "runs/none/extremes?metric=m",
        "runs/none/histograms?metric=m",
        "runs/none/changes",
        "runs/no%00ne",
        "runs/a b",
        "runs/" + "x" * 200,
        "nothing",
        "",
    ],
)
def test_what_is_not_there_is_404_as_a_problem(client: TestClient, path: str) -> None:
    answer = client.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH"])
def test_an_unknown_path_below_api_is_404_whatever_the_method(client: TestClient, method: str) -> None:
    answer = client.request(method, "/api/v2/x")
    assert (answer.status_code, answer.json()["detail"]) == (404, "there is nothing at /api/v2/x")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "metric=",
        "metric=" + "x" * 201,
        "metric=m&limit=1",
        "metric=m&limit=9999",
        "metric=m&from=x",
        "metric=m&to=99999999999999999999",
        "&".join(f"metric=m{i}" for i in range(101)),
    ],
)
def test_a_question_that_makes_no_sense_is_a_problem(client: TestClient, query: str) -> None:
    report(client)
    answer = client.get(f"/api/v1/runs/r1/series?{query}")
    if query == "metric=":
        assert answer.json()[0]["step"] == []
    else:
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
        assert answer.json()["field"]


def test_hostile_questions_reach_no_database(client: TestClient) -> None:
    report(client)
    for name in ("a%00b", "%ED%A0%80", "'%3B--", "%F0%9F%98%80"):
        for path in ("series", "extremes", "histograms"):
            answer = client.get(f"/api/v1/runs/r1/{path}?metric={name}")
            assert answer.status_code in (200, 422), (path, name, answer.text)
        for query in (f"series?metric=m&attempt={name}", f"metrics?attempt={name}"):
            assert client.get(f"/api/v1/runs/r1/{query}").status_code in (404, 422)
        assert client.get(f"/api/v1/runs?project={name}").status_code in (200, 422)


def hooks_told(seq: int, state: str, hook: str = "batch") -> dict[str, Any]:
    rows = [{"hook": hook, "target": "Trainer.step", "gives": "rewards", "state": state}]
    payload = {"framework": "verl", "version": "0.9.1", "steps": 0, "hooks": rows}
    return {"seq": seq, "time_s": NOW_S, "kind": "hook", "payload": payload}


def test_the_hooks_of_a_run_say_what_they_see_and_what_to_do(client: TestClient, set_clock: SetClock) -> None:
    report(client, rows=[], events=[hooks_told(1, "patched")], heartbeat={"time_s": NOW_S, "phase": "update"})
    told = codec.decode(HooksView, client.get("/api/v1/runs/r1/hooks").json())
    assert (told.well, told.summary, told.tables[0].trainer) == (True, "0 of 1 hooks see so far", "verl 0.9.1")
    set_clock(after(12 * 60))
    report(client, rows=[], heartbeat={"time_s": NOW_S, "phase": "update"})
    silent = codec.decode(HooksView, client.get("/api/v1/runs/r1/hooks?attempt=a1").json())
    assert (silent.well, "rlvitals doctor" in silent.advice) == (False, True)
    assert client.get("/api/v1/runs/r1").json()["reason"].startswith("connected, 0 steps in 12 min")
    listed = client.get("/api/v1/runs").json()["items"][0]
    assert (listed["light"], "hook batch of verl 0.9.1 was never called" in listed["reason"]) == ("amber", True)
    report(client, rows=[[3, 1, NOW_S, 0.5]], events=[hooks_told(2, "seen")])
    assert client.get("/api/v1/runs/r1").json()["light"] == "green"
    assert client.get("/api/v1/runs/r1/hooks").json()["summary"] == "1 of 1 hooks see"


@pytest.mark.parametrize("attempt", ["none", "a%00b", "x" * 99])
def test_the_hooks_of_an_attempt_that_is_not_there_are_a_problem(client: TestClient, attempt: str) -> None:
    report(client)
    answer = client.get(f"/api/v1/runs/r1/hooks?attempt={attempt}")
    assert answer.status_code in (404, 422)
    assert answer.headers["content-type"] == "application/problem+json"


def test_events_can_be_asked_for_by_kind(client: TestClient) -> None:
    saved = {"seq": 2, "time_s": NOW_S, "step": 1, "kind": "checkpoint", "payload": {"folder": "/ckpt/1"}}
    report(client, events=[hooks_told(3, "seen"), saved])
    kept = client.get("/api/v1/runs/r1/events?kind=checkpoint").json()
    assert [(event["step"], event["payload"]["folder"]) for event in kept] == [(1, "/ckpt/1")]
    assert client.get("/api/v1/runs/r1/events?kind=dance").status_code == 422


def test_a_wait_for_changes_ends_when_something_is_reported(client: TestClient) -> None:
    report(client)
    first = client.get("/api/v1/runs/r1/changes").json()
    assert first["last_step"] == 1
    answers: list[dict[str, Any]] = []
    query = {"after": first["version"], "wait_s": 20}
    waiter = threading.Thread(
        target=lambda: answers.append(client.get("/api/v1/runs/r1/changes", params=query).json())
    )
    waiter.start()
    report(client, rows=[[2, 2, NOW_S, 0.5]])
    waiter.join(15)
    assert answers[0]["version"] > first["version"]
    assert answers[0]["last_step"] == 2
    everything = client.get("/api/v1/changes").json()
    assert everything["version"] >= answers[0]["version"]


def test_a_wait_without_news_ends_with_the_same_version(client: TestClient) -> None:
    report(client)
    version = client.get("/api/v1/runs/r1/changes").json()["version"]
    again = client.get("/api/v1/runs/r1/changes", params={"after": version, "wait_s": 0}).json()
    assert again["version"] == version


def test_live_wakes_who_waits_for_the_run_or_for_anything_and_nobody_else() -> None:
    async def scene() -> tuple[bool, bool, bool]:
        live = Live()
        start = live.version()
        one = asyncio.create_task(live.wait("r1", start, 10))
        everything = asyncio.create_task(live.wait("", start, 10))
        other = asyncio.create_task(live.wait("r2", start, 0.0))
        await asyncio.sleep(0)
        await asyncio.get_running_loop().run_in_executor(None, live.publish, "r1")
        return await one > start, await everything > start, await other == start

    assert asyncio.run(scene()) == (True, True, True)


def test_live_answers_at_once_when_the_version_is_not_the_one_asked_about() -> None:
    live = Live()
    assert asyncio.run(live.wait("r1", None, 1_000)) == live.version("r1")
    assert asyncio.run(live.wait("r1", 5, 1_000)) == live.version("r1")
    assert live._waiting == {}


def test_a_waiter_that_gave_up_leaves_nothing_behind() -> None:
    live = Live()
    asyncio.run(live.wait("r1", live.version("r1"), 0.0))
    assert live._waiting == {}
    live.publish("r1")


def test_ready_means_the_database_answers_with_this_codes_schema(client: TestClient, app: FastAPI) -> None:
    assert client.get("/readyz").status_code == 200
    with app.state.store.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    answer = client.get("/readyz")
    assert (answer.status_code, "db migrate" in answer.json()["detail"]) == (503, True)
    assert client.get("/healthz").text == "ok\n"


def test_the_openapi_document_is_true(client: TestClient, stranger: TestClient) -> None:
    assert stranger.get("/api/openapi.json").status_code == 401
    document = client.get("/api/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert schemas["Number"]["anyOf"][1]["enum"] == ["NaN", "Infinity", "-Infinity"]
    assert schemas["SeriesView"]["properties"]["value"]["items"] == {"$ref": "#/components/schemas/Number"}
    assert {"type": "number"} not in _parts({k: v for k, v in schemas.items() if k != "Number"})
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "application/problem+json" in operation["responses"]["default"]["content"], (path, method)
    wanted = {"/api/v1/reports", "/api/v1/runs", "/api/v1/alerts", "/api/v1/commands", "/api/v1/channels"}
    assert wanted <= document["paths"].keys()


def _parts(schema: Any) -> list[Any]:
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else []
    return [schema, *(part for one in inner for part in _parts(one))]
