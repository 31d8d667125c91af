"""A provider on the wire: a real HTTP server on loopback that answers as it was told and keeps what it got."""

from __future__ import annotations

import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WAIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One scripted reply; ``hangs`` says nothing until the provider is closed, ``drips`` a header without an end,
    and ``breaks`` promises a body and hangs before it.
    """

    status: int = 200
    body: bytes = b"ok"
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    drips: bool = False
    breaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    chain: Path
    key: Path


def self_signed(folder: Path, host: str) -> Certificate:
    """A certificate of ``host`` that nobody vouches for. Needs openssl."""
    made = Certificate(chain=folder / "chain.pem", key=folder / "key.pem")
    words = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={host}"
    names = ["-addext", f"subjectAltName=DNS:{host},DNS:mail.example"]
    subprocess.run(
        ["openssl", *words.split(), *names, "-keyout", str(made.key), "-out", str(made.chain)],
        check=True,
        capture_output=True,
    )
    return made


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hung up, as these tests make ours do, is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def _fine(got: Got) -> Said | None:
    return None


class Provider:
    """Says its ``script`` in order, then ``ok`` for ever; over TLS with a ``certificate``.

    What ``check`` answers to a request comes before the script.
    """

    def __init__(
        self, *script: Said, check: Callable[[Got], Said | None] = _fine, certificate: Certificate | None = None
    ) -> None:
        self.script = list(script)
        self._check = check
        self.got: list[Got] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.chain, certificate.key)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}/hook/T0KEN"

    def wait_for(self, count: int) -> list[Got]:
        """What arrived, as soon as it is ``count`` requests."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.got) >= count, WAIT_S), f"only {len(self.got)} arrived"
            return list(self.got)

    def hang_up(self) -> None:
        """Ends the calls that hang, without an answer."""
        self._closing.set()

    @contextmanager
    def running(self) -> Iterator[Provider]:
        self._thread.start()
        try:
            yield self
        finally:
            self._closing.set()
            self._server.shutdown()
            self._thread.join(WAIT_S)
            self._server.server_close()

    def _take(self, got: Got) -> Said:
        refused = self._check(got)
        with self._changed:
            self.got.append(got)
            self._changed.notify_all()
            if refused is not None:
                return refused
            return self.script.pop(0) if self.script else Said()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                said = provider._take(Got(path=self.path, headers=headers, body=body))
                if said.hangs:
                    provider._closing.wait(WAIT_S)
                    return
                self.send_response(said.status)
                if said.drips:
                    self.flush_headers()
                    while not provider._closing.wait(0.02):
                        self.wfile.write(b"x")
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(said.body)))
                self.end_headers()
                if said.breaks:
                    provider._closing.wait(WAIT_S)
                    return
                self.wfile.write(said.body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        return Handler
