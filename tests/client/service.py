"""A real HTTP server on the loopback that stands in for the service: it stores by (attempt, writer, seq)."""

from __future__ import annotations

import gzip
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rlvitals.contract import codec
from rlvitals.contract.command import Command, Outcome
from rlvitals.contract.report import Event, Histogram, Receipt, ReportBatch, StepReport, Text
from rlvitals.contract.wire import from_wire

DEADLINE_S = 20.0


@dataclass
class Reply:
    """What to answer instead of a receipt. ``hang`` holds the answer back until the service is closed."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    store: bool = False


class Service:
    """``replies`` are used up first, one a request; ``always`` goes on; otherwise it stores and answers truly."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.released = threading.Event()
        self.epoch = "epoch-1"
        self.batches: list[ReportBatch] = []
        self.headers: list[dict[str, str]] = []
        self.rows: dict[tuple[str, str, int], object] = {}
        self.duplicates = 0
        self.stored_through: dict[tuple[str, str], int] = {}
        self.replies: deque[Reply] = deque()
        self.always: Reply | None = None
        self.judge: Callable[[ReportBatch], Reply | None] = lambda batch: None
        self.edit: Callable[[Receipt], Receipt] = lambda receipt: receipt
        self.commands: tuple[Command, ...] = ()
        self.heartbeat_s = 15.0
        self.requests = 0
        self.url = ""

    def restore(self, epoch: str, keep_through: int) -> None:
        """As after a restore from a backup: what is later than ``keep_through`` is gone, the epoch is new."""
        with self.changed:
            self.epoch = epoch
            self.rows = {key: row for key, row in self.rows.items() if key[2] <= keep_through}
            self.stored_through = {key: min(seq, keep_through) for key, seq in self.stored_through.items()}

    def steps(self, attempt: str | None = None) -> list[StepReport]:
        with self.changed:
            found = [(key, row) for key, row in self.rows.items() if isinstance(row, StepReport)]
        return [row for key, row in sorted(found) if attempt in (None, key[0])]

    def of_kind(self, kind: type) -> list[object]:
        with self.changed:
            return [row for _, row in sorted(self.rows.items(), key=lambda kv: kv[0]) if isinstance(row, kind)]

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = DEADLINE_S) -> None:
        """Fails the test if it does not come true in time."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout_s), "the service never saw it"

    def answer(self, body: bytes, headers: dict[str, str]) -> Reply:
        with self.changed:
            self.requests += 1
            self.headers.append(headers)
            batch, refused = from_wire(codec.loads(gzip.decompress(body)))
            assert not refused
            self.batches.append(batch)
            reply = self.replies.popleft() if self.replies else self.always or self.judge(batch)
            if reply is None or reply.store:
                receipt = self._store(batch)
                reply = reply or Reply(body=codec.dumps(self.edit(receipt)))
            self.changed.notify_all()
        if reply.hang:
            self.released.wait(DEADLINE_S)
        return reply

    def _store(self, batch: ReportBatch) -> Receipt:
        key = (batch.attempt, batch.writer)
        through = before = self.stored_through.get(key, 0)
        if batch.epoch in ("", self.epoch):
            for record in _records(batch):
                self.duplicates += record.seq <= before
                if record.seq > before:
                    self.rows[batch.attempt, batch.writer, record.seq] = record
                    through = max(through, record.seq)
        self.stored_through[key] = through
        return Receipt(
            epoch=self.epoch, stored_through=through, commands=self.commands, heartbeat_s=self.heartbeat_s
        )


def _records(batch: ReportBatch) -> list[StepReport | Text | Histogram | Event | Outcome]:
    return [*batch.steps, *batch.texts, *batch.histograms, *batch.events, *batch.outcomes]


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """Serves on a free port of 127.0.0.1 until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            reply = service.answer(body, {k.lower(): v for k, v in self.headers.items()})
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        service.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
