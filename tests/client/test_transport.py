from __future__ import annotations

import gzip

import pytest

from rlvitals.contract.report import Receipt, ReportBatch, RunInfo, StepReport
from rlvitals.contract.wire import to_wire
from rlvitals.transport import RETRY_AFTER_MAX_S, Transport, Verdict, classify, pack
from tests.client.service import Reply, Service

BATCH = pack(to_wire(ReportBatch(run=RunInfo(id="r"), attempt="a", steps=())))
RECEIPT = b'{"epoch":"e","stored_through":7}'


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (301, Verdict.REFUSED),
        (308, Verdict.REFUSED),
        (400, Verdict.UNREADABLE),
        (401, Verdict.REFUSED),
        (403, Verdict.REFUSED),
        (404, Verdict.REFUSED),
        (408, Verdict.RETRY),
        (410, Verdict.REFUSED),
        (413, Verdict.TOO_LARGE),
        (422, Verdict.UNREADABLE),
        (429, Verdict.RETRY),
        (500, Verdict.RETRY),
        (502, Verdict.RETRY),
    ],
)
def test_a_status_has_a_meaning(status: int, verdict: Verdict) -> None:
    assert classify(status, {}, b"why").verdict is verdict


def test_a_receipt_is_read_and_what_is_none_is_not_believed() -> None:
    assert classify(200, {}, RECEIPT).receipt == Receipt(epoch="e", stored_through=7)
    for body in (
        b"",
        b"ok",
        b"null",
        b"[]",
        b'{"epoch":"e"}',
        b'{"epoch":"e","stored_through":1.5}',
        b"[" * 100_000,
    ):
        assert classify(200, {}, body).verdict is Verdict.RETRY


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), ("99999", RETRY_AFTER_MAX_S), ("-1", None), ("x", None)]
)
def test_retry_after_is_capped_and_nonsense_left_out(text: str, seconds: float | None) -> None:
    assert classify(503, {"retry-after": text}, b"").retry_after_s == seconds


def test_control_characters_of_an_answer_are_not_repeated() -> None:
    assert "\x1b" not in classify(500, {}, b"\x1b[2J\x00boo").reason


def test_a_body_is_gzipped_json() -> None:
    assert gzip.decompress(pack({"a": 1})) == b'{"a":1}'


def test_a_closed_keep_alive_connection_is_opened_again_without_a_failure(service: Service) -> None:
    transport = Transport(service.url, "", timeout_s=5.0)
    assert transport.post(BATCH).verdict is Verdict.STORED
    connection = transport._connection
    assert connection is not None
    connection.sock.shutdown(2)
    assert transport.post(BATCH).verdict is Verdict.STORED
    transport.close()


def test_an_endless_answer_is_cut_off(service: Service) -> None:
    service.always = Reply(body=b"x" * 3_000_000)
    transport = Transport(service.url, "", timeout_s=5.0)
    answer = transport.post(BATCH)
    assert answer.verdict is Verdict.RETRY
    assert "too long" in answer.reason
    transport.close()


def test_a_proxy_is_used_but_not_for_the_loopback(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert Transport("http://vitals.example", "", timeout_s=1.0)._proxy() == ("proxy.invalid", 3128)
    assert Transport(service.url, "", timeout_s=1.0)._proxy() is None
    monkeypatch.setenv("no_proxy", "vitals.example")
    assert Transport("http://vitals.example", "", timeout_s=1.0)._proxy() is None


def test_a_request_through_a_proxy_names_the_whole_address(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", service.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    transport = Transport("http://vitals.example:81/base", "", timeout_s=5.0)
    assert transport.post(BATCH).verdict is Verdict.STORED
    assert transport._target == "http://vitals.example:81/base/api/v1/reports"
    transport.close()


def test_a_token_over_plain_http_to_another_machine_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    Transport("http://vitals.example", "t", timeout_s=1.0)
    assert "unencrypted" in caplog.text
    caplog.clear()
    Transport("https://vitals.example", "t", timeout_s=1.0)
    Transport("http://127.0.0.1:8642", "t", timeout_s=1.0)
    assert caplog.text == ""


def test_steps_go_in_columns() -> None:
    steps = tuple(StepReport(seq=i, step=i, time_s=0.0, values={"a": 1.0}) for i in (1, 2))
    wire = to_wire(ReportBatch(run=RunInfo(id="r"), attempt="a", steps=steps))
    assert wire["names"] == ["a"]
    assert wire["rows"] == [[1, 1, 0.0, 1.0], [2, 2, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            401,
            b'{"detail":"send Authorization"}',
            "HTTP 401: the token is missing or not known there; set RLVITALS_TOKEN",
        ),
        (
            403,
            b'{"title":"Forbidden","detail":"the scope ingest is needed"}',
            "HTTP 403: the scope ingest is needed",
        ),
        (502, b"<html>bad gateway", "HTTP 502: <html>bad gateway"),
        (500, b'{"detail":"a\\u0007b"}', "HTTP 500: a b"),
        (500, b'{"detail":null}', 'HTTP 500: {"detail":null}'),
        (500, b"NaN", "HTTP 500: NaN"),
        (500, b"", "HTTP 500: "),
    ],
)
def test_a_refusal_is_told_by_its_detail_and_not_as_json(status: int, body: bytes, said: str) -> None:
    assert classify(status, {}, body).reason == said
