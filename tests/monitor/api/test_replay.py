"""Logs over REST: judged and not kept, or kept as a run; whoever sends nonsense is told what was expected."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals.contract import codec
from rlvitals_monitor import replay
from rlvitals_monitor.api.uploads import UNPACKED_TIMES, WITH_RULES
from rlvitals_monitor.worker import Worker
from tests.monitor.batches import NOW

LOG = "".join(
    f"(TaskRunner pid=7) step:{n} - actor/grad_norm:{norm} - actor/entropy:0.9 - mine:2\n"
    for n, norm in ((n, "np.float64(nan)" if n == 33 else 0.5) for n in range(1, 41))
).replace("step:9 - ", "step:9 - what - ")
RULES = (
    "groups:\n  - name: own\n    rules:\n      - alert: mine\n        expr: policy.entropy > 0.8\n"
    "        labels: {severity: info}\n        annotations: {summary: s}\n"
)


def test_a_log_is_judged_as_the_command_line_does(
    client: TestClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.log"
    path.write_text(LOG)
    assert replay.main([str(path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    answer = client.post("/api/v1/replay", content=LOG)
    assert answer.status_code == 200
    assert answer.json() == told
    assert told["steps"] == 40
    assert [b["line"] for b in told["bad_lines"]] == [9]
    assert [(a["alert"], a["step"]) for a in told["alerts"] if a["severity"] == "critical"] == [("nonfinite", 33)]
    assert "mine" in told["unknown_metrics"]


def test_a_packed_log_is_read_and_nothing_is_kept(client: TestClient) -> None:
    answer = client.post("/api/v1/replay", content=gzip.compress(LOG.encode()))
    assert answer.json()["steps"] == 40
    assert client.get("/api/v1/runs").json()["items"] == []


def test_own_rules_come_with_the_log(client: TestClient) -> None:
    body = json.dumps({"log": LOG, "rules": RULES})
    answer = client.post("/api/v1/replay", content=body, headers={"content-type": WITH_RULES})
    assert "mine" in {alert["alert"] for alert in answer.json()["alerts"]}


def test_bad_rules_are_told_with_their_line(client: TestClient) -> None:
    body = json.dumps({"log": LOG, "rules": RULES.replace("policy.entropy", "policy.entropi")})
    answer = client.post("/api/v1/replay", content=body, headers={"content-type": WITH_RULES})
    assert answer.status_code == 422
    assert answer.json()["field"] == "rules"
    assert answer.json()["detail"].startswith("rules:5: expected a known metric, got 'policy.entropi'")


def test_an_import_is_a_run_with_its_page_and_its_alerts(app: FastAPI, client: TestClient) -> None:
    told = client.post("/api/v1/import", params={"run": "past-1", "project": "math"}, content=LOG).json()
    assert (told["run"], told["steps"], told["last_step"], told["page"]) == ("past-1", 40, 40, "/ui/run/past-1")
    assert told["bad_line_count"] == 1
    Worker(app.state.store).tick(NOW)
    run = client.get("/api/v1/runs/past-1").json()
    assert (run["project"], run["state"], run["last_step"]) == ("math", "finished", 40)
    alerts = client.get("/api/v1/alerts", params={"run": "past-1"}).json()["items"]
    assert ("nonfinite", 33) in {(alert["rule"], alert["fired_step"]) for alert in alerts}
    incidents = client.get("/api/v1/runs/past-1/incidents").json()
    assert incidents[0]["cause"] == "nan_inf"
    points = client.get("/api/v1/runs/past-1/series", params={"metric": "gradient.norm"}).text
    assert codec.NAN in points


def test_an_import_of_a_few_lines_is_judged_as_by_a_replay(app: FastAPI, client: TestClient) -> None:
    line = "{'loss': 0.0, 'grad_norm': 0.1, 'reward': 0.0, 'reward_std': 0.0, 'kl': 9.0}"
    told = client.post("/api/v1/replay", content=f"{line}\n" * 2).json()
    client.post("/api/v1/import", params={"run": "short"}, content=f"{line}\n" * 2)
    Worker(app.state.store).tick(NOW)
    alerts = client.get("/api/v1/alerts", params={"run": "short"}).json()["items"]
    rang = sorted((one["rule"], one["severity"], one["fired_step"]) for one in alerts)
    assert rang == sorted((one["alert"], one["severity"], one["step"]) for one in told["alerts"])
    assert ("zero_contrast", "critical", 2) in rang


def test_the_same_log_again_adds_nothing_and_another_needs_another_id(client: TestClient) -> None:
    first = client.post("/api/v1/import", content=LOG).json()
    again = client.post("/api/v1/import", content=LOG).json()
    assert first["run"] == again["run"] == first["attempt"]
    assert len(client.get(f"/api/v1/runs/{first['run']}").json()["attempts"]) == 1
    other = client.post(
        "/api/v1/import", params={"run": first["run"]}, content=LOG + "step:41 - actor/entropy:1\n"
    )
    assert other.status_code == 409


def test_rights_are_asked_for(stranger: TestClient, token_for: Callable[..., dict[str, str]]) -> None:
    reader, ingester = token_for("read"), token_for("ingest:math")
    assert stranger.post("/api/v1/replay", content=LOG).status_code == 401
    assert stranger.post("/api/v1/replay", content=LOG, headers=reader).status_code == 200
    assert stranger.post("/api/v1/import", content=LOG, headers=reader).status_code == 403
    foreign = stranger.post("/api/v1/import", params={"project": "code"}, content=LOG, headers=ingester)
    assert foreign.status_code == 403
    own = stranger.post("/api/v1/import", params={"project": "math"}, content=LOG, headers=ingester)
    assert own.status_code == 200


@pytest.fixture
def bounded(app: FastAPI) -> FastAPI:
    app.state.settings = app.state.settings.model_copy(update={"max_log_bytes": 20_000})
    return app


@pytest.mark.parametrize("place", ["replay", "import"])
def test_a_log_beyond_the_bound_is_refused(bounded: FastAPI, client: TestClient, place: str) -> None:
    answer = client.post(f"/api/v1/{place}", content=b"x" * 20_001)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")
    line = b"step:1 - a:1 talk without an end\n"
    bomb = gzip.compress(line * (UNPACKED_TIMES * 20_000 // len(line) + 2000))
    assert client.post(f"/api/v1/{place}", content=bomb).status_code == 413


def database(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path)) as made:
        for statement in statements:
            made.execute(statement)
        made.commit()
    return path.read_bytes()


def test_hostile_bodies_are_told_what_was_expected(client: TestClient, tmp_path: Path) -> None:
    endless = (
        "CREATE VIEW metrics AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
        "SELECT x AS step, 'r' AS run_name, '{}' AS metrics, x AS timestamp FROM c"
    )
    sound = database(tmp_path / "b.db", "CREATE TABLE metrics (key, value, run_uuid, step, timestamp)")
    bodies = [
        b"",
        b"\x00" * 500,
        b"\x1f\x8b" + b"broken" * 10,
        gzip.compress(LOG.encode())[:60],
        b"[" * 20_000,
        b'{"a":' * 5_000,
        database(tmp_path / "a.db", endless),
        sound,
        sound[:2_000],
        sound[:100] + bytes(len(sound) - 100),
        b":W&B" + bytes(40),
        random.Random(1).randbytes(5_000),
        b"just talk\n" * 50,
    ]
    for body in bodies:
        answer = client.post("/api/v1/replay", content=body)
        assert answer.status_code == 422, body[:30]
        assert answer.json()["detail"]
        assert str(tmp_path) not in answer.text
        assert "/tmp" not in answer.text


@pytest.mark.parametrize(
    ("query", "field"), [({"format": "xml"}, "format"), ({"every": 0}, "every"), ({"every": 10**9}, "every")]
)
def test_a_wrong_option_is_named(client: TestClient, query: dict[str, str], field: str) -> None:
    answer = client.post("/api/v1/replay", params=query, content=LOG)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize("body", ["[]", "{", '{"log": 3}', '{"log": "a", "more": 1}', '{"rules": ""}'])
def test_an_object_with_rules_is_read_strictly(client: TestClient, body: str) -> None:
    answer = client.post("/api/v1/replay", content=body, headers={"content-type": WITH_RULES})
    assert answer.status_code == 422
