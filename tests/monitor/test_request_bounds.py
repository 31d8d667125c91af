from __future__ import annotations

from typing import Any

import anyio
import pytest

from rlvitals_monitor.request_bounds import RequestBounds
from rlvitals_monitor.telemetry import Telemetry


async def answers(_scope: Any, receive: Any, send: Any) -> None:
    """Reads the whole body, then answers in two pieces."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x", "more_body": True})
    await send({"type": "http.response.body", "body": b"y"})


def scope(path: str = "/api/v1/x", length: int | None = None, kind: str = "http") -> dict[str, Any]:
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    return {"type": kind, "path": path, "headers": headers, "method": "POST"}


def call(bounds: RequestBounds, about: dict[str, Any], *pieces: bytes, stuck_after: int = 10) -> list[Any]:
    """What was sent; the reader takes no more after ``stuck_after`` messages."""
    sent: list[Any] = []
    waiting = [{"type": "http.request", "body": p, "more_body": True} for p in pieces[:-1]]
    waiting += [{"type": "http.request", "body": p} for p in pieces[-1:]]

    async def receive() -> Any:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if len(sent) >= stuck_after:
            await anyio.sleep_forever()
        sent.append(message)

    async def run() -> None:
        await bounds(about, receive, send)

    anyio.run(run)
    return sent


def test_a_body_that_says_it_is_too_long_is_refused_before_it_is_read() -> None:
    sent = call(RequestBounds(answers, body_bytes=10), scope(length=11), b"x" * 11)
    assert sent[0]["status"] == 413
    assert b'"status": 413' in sent[1]["body"]


def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    with pytest.raises(Exception, match="at most 10 bytes"):
        call(RequestBounds(answers, body_bytes=10), scope(), b"x" * 6, b"x" * 6)


def test_reports_and_logs_have_bounds_of_their_own_and_pages_have_none() -> None:
    for path in ("/api/v1/reports", "/api/v1/import"):
        assert call(RequestBounds(answers, body_bytes=1), scope(path, 9), b"x" * 9)[0]["status"] == 200
    for path in ("/ui/_dash-update-component", "/ui/import", "/"):
        assert call(RequestBounds(answers, body_bytes=1), scope(path, 9), b"x" * 9)[0]["status"] == 413


def test_the_log_of_a_slow_reader_has_no_secret_and_no_line_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    call(RequestBounds(answers, piece_s=0.01), scope("/ui/share/hidden"), b"x", stuck_after=1)
    call(RequestBounds(answers, piece_s=0.01), scope("/ui/\nERROR forged"), b"x", stuck_after=1)
    assert "hidden" not in caplog.text
    assert "\nERROR" not in caplog.text


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_a_reader_that_takes_no_piece_is_dropped(kind: str) -> None:
    telemetry = Telemetry()
    bounds = RequestBounds(answers, piece_s=0.01, telemetry=telemetry)
    assert len(call(bounds, scope(kind=kind), b"x", stuck_after=1)) == 1
    told = telemetry.render().decode()
    assert f'rlvitals_dropped_readers_total{{kind="{kind}"}} 1.0' in told
    assert "rlvitals_open_sockets 0.0" in told


def test_a_reader_in_time_gets_all_of_it() -> None:
    sent = call(RequestBounds(answers, piece_s=30), scope(), b"x")
    assert [message.get("body") for message in sent] == [None, b"x", b"y"]
