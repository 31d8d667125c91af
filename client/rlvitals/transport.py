"""One POST over HTTP(S): bytes out, an `Answer` back. Never follows a redirect: the bearer goes nowhere else."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rlvitals import notices
from rlvitals.contract import codec
from rlvitals.contract.command import Command
from rlvitals.contract.report import Receipt

if TYPE_CHECKING:
    import http.client

REPORTS_PATH = "/api/v1/reports"
ANSWER_BYTES_MAX = 1024 * 1024
RETRY_AFTER_MAX_S = 60.0
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Verdict(str, Enum):
    """``retry`` may pass by itself; ``refused`` needs a person; the last two may be one record's fault."""

    STORED = "stored"
    RETRY = "retry"
    REFUSED = "refused"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``receipt`` is there only when ``verdict`` is ``stored``."""

    verdict: Verdict
    reason: str = ""
    receipt: Receipt | None = None
    retry_after_s: float | None = None


def classify(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """What an HTTP answer means for the batch. Pure."""
    if 200 <= status < 300:
        return _read_receipt(body)
    said = f"HTTP {status}: {_detail(status, body)}"
    if 300 <= status < 400:
        return Answer(
            verdict=Verdict.REFUSED, reason=f"HTTP {status}: it redirects elsewhere, which is not followed"
        )
    if status == 413:
        return Answer(verdict=Verdict.TOO_LARGE, reason=said)
    if status in (400, 422):
        return Answer(verdict=Verdict.UNREADABLE, reason=said)
    if status in (408, 425, 429) or status >= 500 or status < 200:
        return Answer(verdict=Verdict.RETRY, reason=said, retry_after_s=_retry_after(headers))
    return Answer(verdict=Verdict.REFUSED, reason=said)


def pack(wire: object) -> bytes:
    """Compact gzipped JSON; level 1, since the trainer's CPU is worth more than the loopback's bytes."""
    squeeze = zlib.compressobj(1, zlib.DEFLATED, 31)
    return squeeze.compress(codec.dumps(wire)) + squeeze.flush()


class Transport:
    """Keeps one connection open. Not thread-safe: one sender, one transport."""

    def __init__(self, url: str, token: str, *, timeout_s: float, agent: str = "rlvitals") -> None:
        parts = urlsplit(url)
        self.url = url
        self._https = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/") + REPORTS_PATH
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": agent}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
            if not self._https and self._host not in LOOPBACK:
                notices.once("clear", f"the token goes to {self._host} unencrypted: use https:// in RLVITALS_URL")
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes) -> Answer:
        """Sends a packed batch. Every failure of the network is an answer, not an exception."""
        import http.client

        for fresh in (self._connection is None, True):
            try:
                return self._exchange(http.client, body)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.close()
                stale = isinstance(error, (ConnectionError, http.client.BadStatusLine))
                if fresh or not stale:
                    return Answer(verdict=Verdict.RETRY, reason=f"{type(error).__name__}: {error}")
        raise AssertionError("unreachable: the second try is always fresh")

    def ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Sends a packed body once: status, headers by lower-case name, and body. Raises OSError or ValueError."""
        import http.client

        try:
            answer = self._send(http.client, body)
        except http.client.HTTPException as error:
            raise OSError(f"{type(error).__name__}: {error}") from None
        finally:
            self.close()
        if answer is None:
            raise OSError("the answer is too long or too slow")
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, http_client: ModuleType, body: bytes) -> Answer:
        answer = self._send(http_client, body)
        if answer is None:
            return Answer(verdict=Verdict.RETRY, reason="the answer is too long or too slow")
        return classify(*answer)

    def _send(self, http_client: ModuleType, body: bytes) -> tuple[int, dict[str, str], bytes] | None:
        """None where the answer is too long or too slow."""
        deadline = time.monotonic() + self._timeout_s
        if self._connection is None:
            self._connection = self._connect(http_client)
        connection = self._connection
        connection.request("POST", self._target, body=body, headers=self._headers)
        response = connection.getresponse()
        chunks: list[bytes] = []
        while chunk := response.read1(65536):
            chunks.append(chunk)
            if sum(map(len, chunks)) > ANSWER_BYTES_MAX or time.monotonic() > deadline:
                self.close()
                return None
        response.close()  # an empty body would else leave the connection unusable
        if response.will_close:
            self.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, b"".join(chunks)

    def _connect(self, http_client: ModuleType) -> Any:
        self._target = self._path
        kind = http_client.HTTPSConnection if self._https else http_client.HTTPConnection
        proxy = self._proxy()
        if proxy is None:
            return kind(self._host, self._port, timeout=self._timeout_s)
        connection = kind(proxy[0], proxy[1], timeout=self._timeout_s)
        if self._https:
            connection.set_tunnel(self._host, self._port)
        else:
            self._target = f"http://{self._host}:{self._port or 80}{self._path}"
        return connection

    def _proxy(self) -> tuple[str, int] | None:
        """The environment's proxy, in the standard variables; none for the loopback."""
        if self._host in LOOPBACK:
            return None
        from urllib.request import getproxies, proxy_bypass

        address = getproxies().get("https" if self._https else "http")
        if not address or proxy_bypass(self._host):
            return None
        parts = urlsplit(address if "//" in address else f"//{address}")
        return (parts.hostname, parts.port or 8080) if parts.hostname else None


def _read_receipt(body: bytes) -> Answer:
    try:
        told = codec.loads(body)
        receipt = codec.decode(Receipt, {**told, "commands": ()} if isinstance(told, dict) else told)
    except ValueError as error:
        return Answer(verdict=Verdict.RETRY, reason=f"not a receipt ({error}): is this an RL Vitals service?")
    return Answer(verdict=Verdict.STORED, receipt=replace(receipt, commands=_commands(told.get("commands", ()))))


def _commands(told: object) -> tuple[Command, ...]:
    """Those that this release knows: what a newer service asks for is no reason to keep the reports."""
    found = []
    for one in told if isinstance(told, list) else ():
        try:
            found.append(codec.decode(Command, one))
        except ValueError as error:
            notices.once("command", f"the service asks for what this release cannot read: {error}")
    return tuple(found)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds only; a date is not worth trusting another clock for."""
    text = headers.get("retry-after", "").strip()
    return min(float(text), RETRY_AFTER_MAX_S) if text.isascii() and text.isdigit() else None


def _detail(status: int, body: bytes) -> str:
    """What a person can act on: of a problem document (RFC 9457) its detail, else how the body begins."""
    if status == 401:
        return "the token is missing or not known there; set RLVITALS_TOKEN"
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return _excerpt(body)
    detail = told.get("detail") if isinstance(told, dict) else None
    return _excerpt(detail.encode(errors="replace") if isinstance(detail, str) and detail else body)


def _excerpt(body: bytes) -> str:
    text = body[:200].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else " " for c in text)
