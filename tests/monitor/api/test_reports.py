from __future__ import annotations

import gzip
import json
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rlvitals_monitor import collector
from rlvitals_monitor.document import NDJSON
from tests.monitor.batches import NOW_S

JSON = {"content-type": "application/json"}
LINES = {"content-type": NDJSON}
MIB = 1 << 20


def document(**other: Any) -> dict[str, Any]:
    return {"run": {"id": "r1"}, "attempt": "a1", "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]], **other}


def post(client: TestClient, body: Any, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.post("/api/v1/reports", content=content, headers=JSON | headers)


def values(client: TestClient, run: str = "r1", metric: str = "m") -> dict[int, Any]:
    view = client.get(f"/api/v1/runs/{run}/series", params={"metric": metric}).json()[0]
    return dict(zip(view["step"], view["value"], strict=True))


def test_nan_both_infinities_and_missing_come_back_as_four_different_things(client: TestClient) -> None:
    raw = b"""{"run": {"id": "r1"}, "attempt": "a1", "names": ["a", "b", "c", "d", "e"],
      "rows": [[1, 7, 1795953600, "NaN", "Infinity", "-Infinity", null, 0.25]],
      "missing": {"1": {"d": "not asked"}}}"""
    receipt = post(client, raw).json()
    assert (receipt["stored"], receipt["stored_through"], receipt["refused"]) == (1, 1, [])
    answer = client.get("/api/v1/runs/r1/series?" + "&".join(f"metric={n}" for n in "abcde"))
    assert b"null" not in answer.content
    views = {view["metric"]: view for view in answer.json()}
    assert [views[n]["value"] for n in "abcde"] == [["NaN"], ["Infinity"], ["-Infinity"], [], [0.25]]
    assert [views[n]["step"] for n in "abcde"] == [[7], [7], [7], [], [7]]
    assert (views["a"]["nan"], views["b"]["pos_inf"], views["c"]["neg_inf"]) == ([7], [7], [7])
    assert (views["d"]["missing_reason"], views["a"]["missing_reason"]) == ("not asked", "")


def test_the_bare_words_of_a_careless_writer_are_read_as_numbers(client: TestClient) -> None:
    post(client, b'{"run":{"id":"r1"},"attempt":"a","names":["m"],"rows":[[1,1,1e9,NaN],[2,2,1e9,-Infinity]]}')
    assert values(client) == {1: "NaN", 2: "-Infinity"}


def test_a_gzipped_batch_is_read_and_a_resend_counts_as_duplicate(client: TestClient) -> None:
    body = gzip.compress(json.dumps(document()).encode())
    first, second = (post(client, body, **{"content-encoding": "gzip"}).json() for _ in range(2))
    assert (first["stored"], first["duplicates"], first["epoch"]) == (1, 0, second["epoch"])
    assert (second["stored"], second["duplicates"], second["stored_through"]) == (0, 1, 1)
    assert values(client) == {1: 0.5}


def test_lines_of_a_hand_written_client_name_their_run_in_the_query(client: TestClient) -> None:
    lines = b"\n".join(
        json.dumps(line).encode()
        for line in (
            {"seq": 1, "step": 1, "time_s": NOW_S, "values": {"m": 1.0, "gone": None}},
            {"seq": 2, "step": 2, "time_s": NOW_S, "values": {"m": "NaN"}},
        )
    )
    answer = client.post("/api/v1/reports?run=curl&project=p", content=lines + b"\n\n", headers=LINES)
    assert (answer.status_code, answer.json()["stored"]) == (200, 2)
    assert values(client, "curl") == {1: 1.0, 2: "NaN"}
    assert values(client, "curl", "gone") == {}
    assert client.get("/api/v1/runs/curl").json()["project"] == "p"


def test_lines_may_begin_with_who_reports(client: TestClient) -> None:
    lines = (
        b'{"run": {"id": "r9", "name": "nine"}, "attempt": "x"}\n{"seq":1,"step":1,"time_s":1e9,"values":{"m":2}}'
    )
    assert client.post("/api/v1/reports", content=lines, headers=LINES).json()["stored"] == 1
    run = client.get("/api/v1/runs/r9").json()
    assert (run["name"], run["attempts"][0]["id"]) == ("nine", "x")


def test_malformed_lines_are_refused_by_line_and_field_and_passed_over(client: TestClient) -> None:
    lines = (
        b'{"seq":1,"step":1,"time_s":1e9,"values":{"m":1}}\n'
        b'{"seq":2,"step":"two","time_s":1e9,"values":{"m":1}}\n'
        b"not json\n"
        b'{"seq":4,"step":4,"time_s":1e9,"values":{"m":"much"}}\n'
        b'{"seq":5,"step":5,"time_s":1e300,"values":{"m":5}}\n'
        b"[1, 2]\n\xff\xfe\n"
    )
    receipt = client.post("/api/v1/reports?run=r1", content=lines, headers=LINES).json()
    told = {refusal["line"]: refusal["field"] for refusal in receipt["refused"]}
    assert told == {2: "step", 3: "", 4: "values.m", 5: "time_s", 6: "", 7: ""}
    assert (receipt["stored"], receipt["stored_through"]) == (1, 5)


def test_malformed_rows_and_records_are_refused_by_line_and_field_and_passed_over(client: TestClient) -> None:
    receipt = post(
        client,
        document(
            rows=[[1, 1, NOW_S, 1], [2, 2, NOW_S, True], [3, 3, NOW_S], [4, 4, -5, 1], [5, 5, NOW_S, 2]],
            texts=[
                {"seq": 6, "step": 1, "sample": 0, "completion": 5},
                {"seq": 7, "step": 1, "sample": -1, "completion": "x"},
                {"seq": 8, "step": 1, "sample": 0, "completion": "fine"},
            ],
            events=[{"seq": 9, "kind": "party", "time_s": 1}],
            outcomes=[{"seq": 2**63, "command_id": "c", "state": "applied"}],
        ),
    ).json()
    told = [(refusal["line"], refusal["field"]) for refusal in receipt["refused"]]
    assert told == [
        (1, "texts.completion"),
        (1, "events.kind"),
        (1, "outcomes.seq"),
        (2, "m"),
        (3, "row"),
        (4, "time_s"),
        (2, "texts"),
    ]
    assert (receipt["stored"], receipt["stored_through"]) == (3, 9)
    assert values(client) == {1: 1.0, 5: 2.0}
    assert [text["completion"] for text in client.get("/api/v1/runs/r1/texts").json()] == ["fine"]


def test_a_document_wrong_on_every_line_gets_a_bounded_receipt(client: TestClient) -> None:
    receipt = post(client, document(rows=[[i, i, NOW_S, "x"] for i in range(1, 500)])).json()
    assert (len(receipt["refused"]), receipt["stored_through"]) == (100, 499)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[]", ""),
        (b"\xff", ""),
        (b"[" * 100_000, ""),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, ""),
        (b'{"run": {"id": "r1"}}', "attempt"),
        (b'{"attempt": "a"}', "run"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "rows": 5}', "rows"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "steps": [{"seq": 1, "step": 1, "values": {}}]}', "steps"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "names": [5]}', "names[0]"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "texts": {}}', "texts"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "protocol": 99}', "protocol"),
        (b'{"run": {"id": "r1\\u0000"}, "attempt": "a"}', "run.id"),
        (b'{"run": {"id": "../../etc"}, "attempt": "a"}', "run.id"),
        (b'{"run": {"id": "r1", "project": ""}, "attempt": "a"}', "run.project"),
        (b'{"run": {"id": "r1"}, "attempt": "a", "heartbeat": {"time_s": 1, "phase": "nap"}}', "heartbeat.phase"),
    ],
)
def test_what_cannot_be_read_at_all_is_a_problem_that_names_the_field(
    client: TestClient, body: bytes, field: str
) -> None:
    answer = post(client, body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json().get("field", "") == field
    assert client.get("/api/v1/runs").json()["items"] == []


def test_numbers_beyond_a_double_and_names_from_hell_are_refused_alone(client: TestClient) -> None:
    names = ["m", "\x00", "\ud83d", "a" * 300, "</script><b>", "größe"]
    receipt = post(
        client, document(names=names, rows=[[1, 1, NOW_S, *range(6)], [2, 2, NOW_S, 10**400, *"12345"]])
    )
    assert receipt.status_code == 200
    assert {metric["metric"] for metric in client.get("/api/v1/runs/r1/metrics").json()} == {
        "m",
        "</script><b>",
        "größe",
    }
    assert receipt.json()["stored"] == 1


def test_broken_text_passes_through_store_and_wire(client: TestClient) -> None:
    text = {
        "seq": 2,
        "step": 1,
        "sample": 0,
        "completion": "a\x00\ud83d\ufffd<b>",
        "reward": "NaN",
        "token_ids": [0],
    }
    assert post(client, document(texts=[text])).json()["stored"] == 2
    (read,) = client.get("/api/v1/runs/r1/texts?step=1").json()
    assert (read["completion"], read["reward"], read["token_ids"]) == ("a\\x00\\ud83d\ufffd<b>", "NaN", [0])


def test_a_body_too_large_is_refused_before_it_is_read_whole(client: TestClient, app: FastAPI) -> None:
    answer = post(client, b" " * (app.state.settings.max_body_bytes + 1))
    assert (answer.status_code, answer.json()["type"]) == (413, "urn:rlvitals:problem:too-large")


def test_a_gzip_bomb_is_stopped_at_the_bound(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self._real = real(wbits=wbits)

        def decompress(self, body: bytes, limit: int) -> bytes:
            asked.append(limit)
            return self._real.decompress(body, limit)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    bomb = gzip.compress(b" " * (200 * MIB), 9)
    assert len(bomb) < MIB
    answer = post(client, bomb, **{"content-encoding": "gzip"})
    assert answer.status_code == 413
    assert asked == [32 * MIB + 1]


def test_many_small_gzip_members_are_bounded_together(client: TestClient) -> None:
    bomb = gzip.compress(b" " * (20 * MIB), 9) * 2
    assert post(client, bomb, **{"content-encoding": "gzip"}).status_code == 413


@pytest.mark.parametrize(
    "body",
    [b"no gzip", gzip.compress(b"{}", mtime=0)[:-4], gzip.compress(b"{}", mtime=0) + b"tail"],
    ids=["no gzip", "cut short", "with a tail"],
)
def test_a_broken_gzip_body_is_a_problem(client: TestClient, body: bytes) -> None:
    assert post(client, body, **{"content-encoding": "gzip"}).status_code == 422


def test_too_many_lines_rows_or_names_are_refused(client: TestClient, app: FastAPI) -> None:
    lines = b"{}\n" * (app.state.settings.max_lines + 1)
    assert client.post("/api/v1/reports?run=r1", content=lines, headers=LINES).status_code == 413
    assert post(client, document(rows=[[]] * (app.state.settings.max_lines + 1))).status_code == 413
    assert post(client, document(names=[f"n{i}" for i in range(2_501)])).status_code == 413


@pytest.mark.parametrize("kind", ["", "text/plain", "multipart/form-data", "application/x-www-form-urlencoded"])
def test_only_json_is_taken_so_that_no_page_can_post_a_form(client: TestClient, kind: str) -> None:
    answer = client.post("/api/v1/reports", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


def test_an_unknown_encoding_is_refused(client: TestClient) -> None:
    assert post(client, b"{}", **{"content-encoding": "br"}).status_code == 415


def test_a_batch_for_another_epoch_is_not_taken_but_told_where_to_begin(client: TestClient) -> None:
    epoch = post(client, document()).json()["epoch"]
    later = document(rows=[[2, 2, NOW_S, 2.0]])
    receipt = post(client, later | {"epoch": "of-another-store"}).json()
    assert (receipt["epoch"], receipt["stored_through"], receipt["stored"]) == (epoch, 1, 0)
    assert values(client) == {1: 0.5}
    assert post(client, later | {"epoch": epoch}).json()["stored"] == 1
    unknown = post(client, document(run={"id": "r2"}, epoch="other")).json()
    assert (unknown["stored_through"], client.get("/api/v1/runs/r2").status_code) == (0, 404)


def test_a_paused_run_is_asked_to_call_back_soon(client: TestClient) -> None:
    assert post(client, document()).json()["heartbeat_s"] == 15.0
    paused = document(rows=[], heartbeat={"time_s": NOW_S, "phase": "paused", "last_step": 1})
    assert post(client, paused).json()["heartbeat_s"] == 2.0
    assert client.get("/api/v1/runs/r1").json()["state"] == "paused"


def test_two_attempts_and_two_writers_of_a_run_are_all_kept(client: TestClient) -> None:
    post(client, document())
    post(client, document(writer="rank1", names=["numerics.nonfinite"], rows=[[1, 1, NOW_S, 2]]))
    post(client, document(attempt="a2", rows=[[1, 1, NOW_S, 9.0]]))
    run = client.get("/api/v1/runs/r1").json()
    assert [(a["id"], a["ordinal"]) for a in run["attempts"]] == [("a1", 1), ("a2", 2)]
    assert values(client) == {1: 9.0}
    first = client.get("/api/v1/runs/r1/series?metric=m&metric=numerics.nonfinite&attempt=a1").json()
    assert [view["value"] for view in first] == [[0.5], [2.0]]
    assert client.get("/api/v1/runs/r1/series?metric=m&attempt=a3").status_code == 404


def test_an_ingest_token_of_a_project_reports_to_no_other(
    stranger: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    mine = token_for("ingest:mine")
    assert post(stranger, document(run={"id": "r1", "project": "mine"}), **mine).status_code == 200
    answer = post(stranger, document(run={"id": "r2", "project": "theirs"}), **mine)
    assert (answer.status_code, "theirs" in answer.json()["detail"]) == (403, True)


def test_a_run_of_another_project_cannot_be_written_to(
    stranger: TestClient, client: TestClient, token_for: Callable[..., dict[str, str]]
) -> None:
    post(client, document(run={"id": "r1", "project": "theirs"}))
    answer = post(stranger, document(run={"id": "r1", "project": "mine"}), **token_for("ingest:mine"))
    assert answer.status_code == 403
    assert client.get("/api/v1/runs/r1").json()["project"] == "theirs"


def test_the_worker_is_woken_by_steps_and_not_by_duplicates_or_heartbeats(
    client: TestClient, app: FastAPI
) -> None:
    woken: list[str] = []

    class Worker:
        def wake(self, run: str) -> None:
            woken.append(run)

        def stop(self) -> None: ...

    app.state.worker = Worker()
    post(client, document())
    post(client, document())
    post(client, document(rows=[], heartbeat={"time_s": NOW_S}))
    assert woken == ["r1"]


def test_a_database_that_fails_costs_a_503_and_loses_nothing(
    client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(app.state.store, "_busy_timeout_s", 0.01)
        held, release = threading.Event(), threading.Event()

        def hold() -> None:
            with app.state.store.begin() as connection:
                connection.exec_driver_sql("UPDATE meta SET value = value")
                held.set()
                release.wait(10)

        if app.state.store.is_sqlite:
            thread = threading.Thread(target=hold)
            thread.start()
            assert held.wait(10)
            answer = post(client, document())
            release.set()
            thread.join(10)
        else:
            patch.setattr(collector, "store_batch", _no_database)
            answer = post(client, document())
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert post(client, document()).json()["stored"] == 1


def _no_database(*_: Any, **__: Any) -> Any:
    from sqlalchemy.exc import OperationalError

    raise OperationalError("INSERT", {}, Exception("the server closed the connection"))


def test_an_outcome_that_cannot_be_recorded_costs_no_report(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> bool:
        raise ValueError("no")

    monkeypatch.setattr(collector.handover, "record_outcome", fail)
    monkeypatch.setattr(collector.handover, "pending_for", fail)
    outcome = {"seq": 2, "command_id": "c", "state": "applied"}
    receipt = post(client, document(outcomes=[outcome])).json()
    assert [(r["line"], r["field"]) for r in receipt["refused"]] == [(1, "outcomes")]
    assert (receipt["stored_through"], receipt["commands"], values(client)) == (2, [], {1: 0.5})


def test_many_runs_report_at_once_and_none_loses_a_step(client: TestClient) -> None:
    with ThreadPoolExecutor(6) as pool:
        codes = [code for done in [pool.submit(_train, client, n) for n in range(6)] for code in done.result(60)]
    assert set(codes) == {200}
    for number in range(6):
        assert values(client, f"r{number}") == {s: float(s) for s in range(1, 8)}


def _train(client: TestClient, number: int) -> list[int]:
    return [
        post(client, document(run={"id": f"r{number}"}, rows=[[s, s, NOW_S, s]])).status_code for s in range(1, 8)
    ]


def test_the_service_counts_what_it_took(client: TestClient) -> None:
    post(client, document())
    post(client, document(rows=[[1, 1, NOW_S, 1], [2, 2, NOW_S, "x"]]))
    post(client, b"{")
    told = client.get("/metrics").text
    for line in (
        'rlvitals_ingest_records_total{outcome="stored"} 1.0',
        'rlvitals_ingest_records_total{outcome="duplicate"} 1.0',
        'rlvitals_ingest_records_total{outcome="refused"} 1.0',
        'rlvitals_ingest_batches_total{answer="stored"} 2.0',
    ):
        assert line in told
