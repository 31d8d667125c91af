"""What the query client asks and is answered is as the service's OpenAPI document says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from rlvitals.query import Query
from tests.client.query.test_query import app as app
from tests.client.query.test_query import http as http
from tests.client.query.test_query import query as query

ASKED: tuple[Callable[[Query], object], ...] = (
    lambda q: list(q.runs(project="tiny", sort="-created", state=["running"], q="r1")),
    lambda q: q.run("r1"),
    lambda q: q.metrics("r1", attempt="a1"),
    lambda q: q.events("r1", limit=5),
    lambda q: q.texts("r1", step=4, worst=True, limit=5, attempt="a1"),
    lambda q: q.rules("r1"),
    lambda q: q.series("r1", "loss", "kl.mean", limit=5),
    lambda q: q.histograms("r1", "loss", limit=5),
    lambda q: q.extremes("r1", "loss", limit=5),
    lambda q: q.arrow("r1", ["loss"], attempt="a1", first=1, last=9),
    lambda q: list(q.alerts(run="r1", state=["firing"])),
    lambda q: q.transitions("r1", limit=5),
    lambda q: list(q.commands(run="r1")),
    lambda q: list(q.audit(who="local")),
    lambda q: q.get("/incidents"),
)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """What stands behind REST makes no difference here."""
    return sqlite_url


def find(document: dict[str, Any], path: str) -> dict[str, Any]:
    """The GET operation of a path, by its template."""
    parts = path.split("/")
    for template, operations in document["paths"].items():
        named = template.split("/")
        if len(named) == len(parts) and all(
            n.startswith("{") or n == p for n, p in zip(named, parts, strict=True)
        ):
            return dict(operations["get"])
    raise AssertionError(f"{path} is not in the document")


def test_every_question_and_answer_is_in_the_openapi_document(query: Query, http: TestClient) -> None:
    answers: list[httpx2.Response] = []
    http.event_hooks = {"response": [lambda answer: (answer.read(), answers.append(answer))]}
    for ask in ASKED:
        ask(query)
    http.event_hooks = {}
    document = http.get("/api/openapi.json").json()
    assert len({urlsplit(str(answer.url)).path for answer in answers}) >= len(ASKED)
    for answer in answers:
        url = urlsplit(str(answer.url))
        operation = find(document, url.path)
        known = (
            {parameter["name"] for parameter in operation["parameters"]} if "parameters" in operation else set()
        )
        assert parse_qs(url.query).keys() <= known, url
        content = operation["responses"]["200"]["content"]
        if "application/json" in content:
            schema = {**content["application/json"]["schema"], "components": document["components"]}
            Draft202012Validator(schema).validate(answer.json())
