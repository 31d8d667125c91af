"""Rules that people edit, look at and try while the service runs, on both databases."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW

MINE = """groups:
  - name: own
    rules:
      - alert: too_long
        expr: length.mean > {limit}
        labels: {{severity: warning}}
        annotations: {{summary: "Completions of {{value}} tokens."}}
"""
LENGTHS = [100.0] * 20 + [900.0] * 10


def put(client: TestClient, text: str, base: int = 0, why: str = "") -> Any:
    return client.put("/api/v1/rules/edited", json={"text": text, "base": base, "why": why})


def bring(client: TestClient, run: str, values: list[Any], metric: str = "length.mean") -> None:
    log = "\n".join(json.dumps({"step": at, metric: value}) for at, value in enumerate(values))
    answer = client.post(f"/api/v1/import?run={run}&format=json lines", content=log.encode())
    assert answer.status_code == 200, answer.text


def judge(app: FastAPI) -> None:
    Worker(app.state.store, book=app.state.rulebook, clock=lambda: NOW).tick(NOW)


def names(client: TestClient) -> set[str]:
    return {rule["rule"] for rule in client.get("/api/v1/rules").json()}


def test_an_edit_is_in_force_at_once_in_every_process_and_each_version_is_kept(
    app: FastAPI, client: TestClient
) -> None:
    other = RuleBook([], NOW, app.state.store)
    assert put(client, MINE.format(limit=500), why="long answers cost").json()["number"] == 1
    assert "too_long" in names(client)
    assert "too_long" in {rule.alert for rule in other.refresh(NOW)}
    assert put(client, "", base=1).json()["number"] == 2
    assert "too_long" not in names(client)
    assert "too_long" not in {rule.alert for rule in other.refresh(NOW)}
    versions = client.get("/api/v1/rules/edited/versions").json()
    assert [(v["number"], v["why"], v["changed_by"]) for v in versions] == [
        (2, "", "local"),
        (1, "long answers cost", "local"),
    ]
    lines = client.get("/api/v1/audit").json()["items"]
    edits = [line["detail"] for line in lines if line["what"] == "rules edited"]
    assert edits == [
        "version 2: removed too_long/warning",
        "version 1: added too_long/warning (long answers cost)",
    ]


def test_who_edited_an_older_version_overwrites_nothing(client: TestClient) -> None:
    put(client, MINE.format(limit=500))
    late = put(client, MINE.format(limit=1))
    assert late.status_code == 409
    assert "somebody put other rules in force" in late.json()["detail"]
    assert "limit=500" not in late.text
    assert "> 500" in client.get("/api/v1/rules/edited").json()["text"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (MINE.format(limit="nine"), 5, "expected"),
        ("groups: [\n", 2, "expected YAML"),
        (MINE.format(limit=1).replace("warning", "loud"), 6, "expected one of info, warning, critical"),
        ("off: [no_such_alert]", 1, "expected the name of an alert in off"),
        ("groups: []\x00", 1, "expected YAML"),
        ("just words", 1, "expected a mapping"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_put_in_force_by_nobody(
    client: TestClient, text: str, line: int, words: str
) -> None:
    before = names(client)
    (fault, *_) = client.post("/api/v1/rules/check", json={"text": text}).json()["faults"]
    assert fault["line"] == line
    assert words in fault["words"]
    assert put(client, text).status_code == 422
    assert names(client) == before
    assert client.get("/api/v1/rules/edited").json()["number"] == 0


def test_a_check_says_what_an_edit_would_add_change_and_take_away(client: TestClient) -> None:
    (some, *_) = client.get("/api/v1/rules").json()
    source = client.get(f"/api/v1/rules/{some['rule']}/source?severity={some['severity']}").json()["text"]
    same = client.post("/api/v1/rules/check", json={"text": source}).json()
    assert (same["faults"], same["added"], same["changed"], same["removed"]) == ([], [], [], [])
    other = f"{source}off: [nonfinite]\n".replace("annotations:", "warmup: 7\n      annotations:")
    told = client.post("/api/v1/rules/check", json={"text": other}).json()
    assert told["changed"] == [f"{some['rule']}/{some['severity']}"]
    assert told["removed"] == ["nonfinite/critical"]


def test_only_an_admin_puts_rules_in_force_and_a_reader_may_try_them(
    stranger: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    edit = {"text": "", "base": 0}
    assert stranger.put("/api/v1/rules/edited", json=edit).status_code == 401
    operator, reader = token_for("operate", name="op"), token_for("read", name="eye")
    assert stranger.put("/api/v1/rules/edited", json=edit, headers=operator).status_code == 403
    assert stranger.post("/api/v1/rules/check", json={"text": ""}, headers=reader).status_code == 200
    assert stranger.post("/api/v1/rules/nonfinite/test?severity=critical", headers=reader).status_code == 403


def test_the_board_says_of_every_rule_how_it_stands_on_every_run(app: FastAPI, client: TestClient) -> None:
    put(client, MINE.format(limit=500))
    kinds = {"nan": "NaN", "high": "Infinity", "low": "-Infinity", "long": 900.0, "short": 10.0}
    for run, value in kinds.items():
        bring(client, run, [100.0] * 40 + [value] * 5)
    bring(client, "without", [0.5] * 45, metric="reward.mean")
    judge(app)
    stands: dict[str, dict[str, Any]] = {}
    for run in (*kinds, "without"):
        board = client.get(f"/api/v1/rules/standing?run={run}").json()
        (row,) = [row for row in board["rules"] if row["rule"] == "too_long"]
        assert row["where"] == "edited:4"
        (stands[run],) = row["standings"]
    truths = {run: one["truth"] for run, one in stands.items()}
    assert truths["long"] == truths["high"] == "active"
    assert truths["short"] == truths["low"] == "inactive"
    assert truths["nan"] == "unknown"
    assert (truths["without"], stands["without"]["dormant"]) == ("unknown", True)
    assert stands["without"]["reason"] == "this run does not report length.mean"
    assert stands["nan"]["reason"] == "length.mean is NaN"
    assert [stands[run]["value"] for run in kinds] == [None, "Infinity", "-Infinity", 900.0, 10.0]
    everything = client.get("/api/v1/rules/standing").json()
    assert everything["runs"] == []  # imported runs are over
    assert client.get("/api/v1/rules/standing?run=nobody").status_code == 404


def test_it_is_told_how_far_a_run_is_judged(app: FastAPI, client: TestClient) -> None:
    bring(client, "r", LENGTHS)
    assert client.get("/api/v1/runs/r/judged").json() == {"step": None, "last_step": 29}
    judge(app)
    assert client.get("/api/v1/runs/r/judged").json() == {"step": 29, "last_step": 29}
    assert client.get("/api/v1/runs/nobody/judged").status_code == 404


def test_a_back_test_holds_an_edit_against_the_rules_in_force(client: TestClient) -> None:
    bring(client, "r", LENGTHS)
    wish = {"runs": [{"run": "r", "bad": True, "since": 20}], "edited": MINE.format(limit=500), "against": ""}
    told = client.post("/api/v1/rules/backtest", json=wish).json()
    (differs,) = [d for d in told["differences"] if d["alert"] == "too_long"]
    assert (differs["ours"], differs["theirs"]) == ([20], [])
    wrong = client.post("/api/v1/rules/backtest", json={**wish, "edited": "groups: 3"})
    assert wrong.status_code == 422
    assert "edited:1: expected a list" in wrong.json()["detail"]


def test_who_test_fires_a_rule_is_noted_and_no_alert_is_made(client: TestClient) -> None:
    bring(client, "r", LENGTHS)
    told = client.post("/api/v1/rules/nonfinite/test?severity=critical&run=r").json()
    assert told == {"rule": "nonfinite", "severity": "critical", "tests": [], "deaf": []}
    assert client.get("/api/v1/alerts").json()["items"] == []
    lines = client.get("/api/v1/audit").json()["items"]
    assert [line["detail"] for line in lines if line["what"] == "rule test-fired"] == ["nonfinite/critical"]
    assert client.post("/api/v1/rules/nobody/test?severity=critical").status_code == 404
