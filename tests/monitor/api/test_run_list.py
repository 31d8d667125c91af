"""The list of runs by REST: which ones, in what order, and what people say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rlvitals.contract import codec
from rlvitals.contract.view import RunChoices, RunView
from tests.monitor.batches import NOW_S

ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def report(client: TestClient, run: str, **info: Any) -> None:
    body = {"run": {"id": run, **info}, "attempt": run, "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]]}
    assert client.post("/api/v1/reports", json=body).status_code == 200


def ids(client: TestClient, query: str) -> list[str]:
    return [run["id"] for run in client.get(f"/api/v1/runs?{query}").json()["items"]]


def test_runs_are_filtered_and_sorted_page_by_page_and_people_mark_them(client: TestClient) -> None:
    for number in range(5):
        report(client, f"r{number}", project=f"p{number % 2}", name=f"n{9 - number}", config={"lr": 1})
    assert ids(client, "sort=name") == ["r4", "r3", "r2", "r1", "r0"]
    assert ids(client, "project=p0&project=p1&q=N9&light=green&state=running") == ["r0"]
    seen, cursor = [], ""
    while True:
        page = client.get("/api/v1/runs", params={"sort": "-name", "limit": 2, "cursor": cursor}).json()
        seen += [run["id"] for run in page["items"]]
        cursor = page["next"]
        if not cursor:
            break
    assert seen == ["r0", "r1", "r2", "r3", "r4"]
    said = {"owner": "ada", "labels": ["b"], "add_labels": ["night"], "notes": "<b>", "archived": True}
    made = codec.decode(RunView, client.patch("/api/v1/runs/r1", json=said).json())
    assert (made.owner, made.labels, made.notes, made.archived_at is None) == ("ada", ("b", "night"), "<b>", False)
    assert "r1" not in ids(client, "")
    assert ids(client, "archived=only&owner=ada&label=night") == ["r1"]
    listed = client.get("/api/v1/runs?archived=any").json()["items"][0]
    assert (listed["config"], listed["attempts"]) == ({}, [])
    assert client.get("/api/v1/runs?full=true").json()["items"][0]["config"] == {"lr": 1}
    choices = codec.decode(RunChoices, client.get("/api/v1/facets").json())
    assert (choices.projects, choices.owners, choices.labels) == (("p0", "p1"), ("ada",), ("b", "night"))
    lines = client.get("/api/v1/audit?run=r1").json()["items"]
    assert {line["what"] for line in lines} == {"run owner", "run labels", "run notes", "run archived"}


@ONE_DATABASE
@pytest.mark.parametrize(
    "query",
    [
        "sort=loss",
        "sort=--name",
        "light=blue",
        "archived=maybe",
        "seen_since=2026-01-31T12:00:00",
        "q=" + "x" * 201,
    ],
)
def test_a_question_that_means_nothing_is_told_so(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/v1/runs?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


@ONE_DATABASE
def test_a_cursor_of_another_order_is_told_so(client: TestClient) -> None:
    for run in ("a", "b"):
        report(client, run)
    for mine in ("name", "-kl_coef", "seen", "-light", "owner"):
        cursor = client.get(f"/api/v1/runs?sort={mine}&limit=1").json()["next"]
        assert client.get(f"/api/v1/runs?sort={mine}&cursor={cursor}").status_code == 200
        assert client.get(f"/api/v1/runs?sort=-created&cursor={cursor}").status_code == 422


@ONE_DATABASE
def test_marks_need_the_right_to_operate_and_a_run_that_is_there(
    client: TestClient, stranger: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    report(client, "r1")
    for scope, status in (("read", 403), ("ingest", 403), ("operate", 200)):
        answer = stranger.patch("/api/v1/runs/r1", json={"owner": scope}, headers=token_for(scope))
        assert answer.status_code == status, scope
    assert stranger.patch("/api/v1/runs/r1", json={}).status_code == 401
    assert client.patch("/api/v1/runs/r9", json={"owner": "x"}).status_code == 404
    for body in ({"labels": ["x" * 65]}, {"labels": [" "]}, {"owner": 1}, {"notes": "x" * 10_001}):
        assert client.patch("/api/v1/runs/r1", json=body).status_code == 422, body
