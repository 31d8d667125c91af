"""Policies and the audit over REST."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

V1 = "/api/v1"


def choose(client: TestClient, **body: object) -> int:
    return client.put(f"{V1}/policies", json=body).status_code


def test_a_choice_is_made_shown_and_taken_back(client: TestClient) -> None:
    assert choose(client, scope="run", name="r1", policy="observe") == 200
    shown = client.get(f"{V1}/policies").json()["items"]
    assert [(view["scope"], view["name"], view["policy"], view["changed_by"]) for view in shown] == [
        ("default", "", "approve", ""),
        ("run", "r1", "observe", "local"),
    ]
    left = client.delete(f"{V1}/policies", params={"scope": "run", "name": "r1"})
    assert [view["scope"] for view in left.json()["items"]] == ["default"]
    again = client.delete(f"{V1}/policies", params={"scope": "run", "name": "r1"})
    assert again.status_code == 404
    audited = client.get(f"{V1}/audit", params={"what": "policy chosen"}).json()["items"]
    assert [line["detail"] for line in audited] == ["run r1: observe"]


def test_a_rule_that_is_mistyped_is_not_found_and_a_project_that_is_not_known_is_noted(client: TestClient) -> None:
    body = {"scope": "rule", "name": "entropy_colapse", "policy": "auto"}
    refused = client.put(f"{V1}/policies", json=body)
    assert refused.status_code == 404
    assert "the nearest names are entropy_collapse" in refused.json()["detail"]
    body = {"scope": "project", "name": "new", "policy": "auto"}
    assert "no project 'new' has been heard of yet" in client.put(f"{V1}/policies", json=body).json()["note"]


@pytest.mark.parametrize(
    "body",
    [
        {"scope": "galaxy", "name": "r1", "policy": "auto"},
        {"scope": "run", "name": "", "policy": "auto"},
        {"scope": "run", "name": "x" * 129, "policy": "auto"},
        {"scope": "run", "name": "r1", "policy": "always"},
    ],
)
def test_a_choice_that_is_none_is_refused(client: TestClient, body: dict[str, object]) -> None:
    assert choose(client, **body) == 422


def test_the_audit_is_exported_as_a_file_and_checked(client: TestClient) -> None:
    choose(client, scope="project", name="=demo", policy="auto")
    lines = client.get(f"{V1}/audit/export")
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert '"what":"policy chosen"' in lines.text
    table = client.get(f"{V1}/audit/export", params={"form": "csv", "what": "policy chosen"})
    assert table.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    assert len(table.text.splitlines()) == 2
    checked = client.get(f"{V1}/audit/check").json()
    assert checked["fault"] == ""
    assert client.get(f"{V1}/audit/check", params={"head": checked["head"]}).json()["fault"] == ""
    assert "cut off" in client.get(f"{V1}/audit/check", params={"head": "0" * 64}).json()["fault"]
    assert client.get(f"{V1}/audit/check", params={"head": "no digest"}).status_code == 422


def test_what_a_database_cannot_be_asked_is_refused_before_the_audits_file_begins(client: TestClient) -> None:
    for form in ("jsonl", "csv"):
        answer = client.get(f"{V1}/audit/export", params={"form": form, "what": "a\x00b"})
        assert answer.status_code in (200, 422), "SQLite finds nothing, PostgreSQL takes no NUL"
        assert answer.status_code == 200 or answer.headers["content-type"] == "application/problem+json"
