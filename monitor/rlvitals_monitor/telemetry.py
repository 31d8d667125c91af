"""The service's own numbers for /metrics; one registry for each app, so that two in one process do not mix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rlvitals.contract.health import PartHealth, QueueView
from rlvitals.contract.report import Refusal
from rlvitals_monitor.store.deliveries import Standing

WORK_BUCKETS_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
WORKS = ("judging", "routing", "proposing")
STATES = ("waiting", "delivered", "failed", "dropped")
REASONS = frozenset(
    {"row", "seq", "step", "time_s", "names", "values", "missing", "extremes", "texts", "histograms", "events",
     "outcomes", "run", "heartbeat"}
)  # fmt: skip


class Telemetry:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        r = self.registry
        self.records = Counter(
            "rlvitals_ingest_records", "Records of reports by what became of them", ["outcome"], registry=r
        )
        self.batches = Counter("rlvitals_ingest_batches", "Batches by answer", ["answer"], registry=r)
        self.ingest_s = Histogram(
            "rlvitals_ingest_seconds", "From a batch's arrival to its receipt, by stage", ["stage"], registry=r
        )
        self.lag_s = Gauge("rlvitals_ingest_lag_seconds", "Age of the newest step when it was stored", registry=r)
        self.bytes = Counter("rlvitals_ingest_bytes", "Body bytes as sent", registry=r)
        self.refused = Counter(
            "rlvitals_ingest_refused_records",
            "Refused records by what was wrong with them",
            ["reason"],
            registry=r,
        )
        self.held = Gauge("rlvitals_ingest_held_bytes", "Memory that reports in flight count for", registry=r)
        self.waiting = Gauge("rlvitals_queue_waiting", "Work that waits in the database", ["queue"], registry=r)
        self.oldest_s = Gauge(
            "rlvitals_queue_age_seconds", "How long the oldest of it waits", ["queue"], registry=r
        )
        self.size = Gauge("rlvitals_database_bytes", "Size of the database with its indices", registry=r)
        self.runs = Gauge("rlvitals_runs", "Runs that are kept", registry=r)
        self.deliveries = Gauge(
            "rlvitals_deliveries", "Messages to a channel by state", ["channel", "state"], registry=r
        )
        self.work_s = Histogram(
            "rlvitals_worker_seconds",
            "How long a piece of the worker's round took; judging is the rules' own time",
            ["work"],
            buckets=WORK_BUCKETS_S,
            registry=r,
        )
        self.work_failures = Counter(
            "rlvitals_worker_failures", "Pieces of work that failed", ["work"], registry=r
        )
        self.sockets = Gauge("rlvitals_open_sockets", "WebSockets of open pages", registry=r)
        self.dropped_readers = Counter(
            "rlvitals_dropped_readers", "Connections closed because nobody read from them", ["kind"], registry=r
        )
        self.build = Gauge("rlvitals_build_info", "1 for the version that runs", ["version"], registry=r)
        self.build.labels(version("rlvitals")).set(1)
        self.well = Gauge("rlvitals_part_well", "Whether a part of the service is well", ["part"], registry=r)
        self.pings = Counter(
            "rlvitals_heartbeat_pings",
            "Pings to the outside watcher, by what they said",
            ["said", "taken"],
            registry=r,
        )

    def note_parts(self, parts: Iterable[PartHealth]) -> None:
        for part in parts:
            self.well.labels(part.name).set(part.well)

    def note_refusals(self, refused: Iterable[Refusal]) -> None:
        for refusal in refused:
            self.refused.labels(refusal_reason(refusal)).inc()

    def note_work(self, work: str, took_s: float, well: bool) -> None:
        """A name of a run in ``work`` is left out: there may be any number of them."""
        kind = next((kind for kind in WORKS if work.startswith(kind)), work)
        self.work_s.labels(kind).observe(took_s)
        if not well:
            self.work_failures.labels(kind).inc()

    def note_queues(self, queues: Iterable[QueueView], now: datetime) -> None:
        for queue in queues:
            age = 0.0 if queue.since is None else max(0.0, (now - queue.since).total_seconds())
            self.waiting.labels(queue.name).set(queue.waiting)
            self.oldest_s.labels(queue.name).set(age)

    def note_deliveries(self, standings: Mapping[str, Standing]) -> None:
        for channel, standing in standings.items():
            for state in STATES:
                self.deliveries.labels(channel, state).set(getattr(standing, state))

    def note_ping(self, well: bool, taken: bool) -> None:
        self.pings.labels("well" if well else "fail", "yes" if taken else "no").inc()

    def render(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self.registry)


def refusal_reason(refusal: Refusal) -> str:
    """The part of the report that was wrong: a metric's own name may be anything, and is told as ``metric``."""
    part = refusal.field.partition(".")[0].partition("[")[0]
    return part if part in REASONS else "metric" if part else "unreadable"
