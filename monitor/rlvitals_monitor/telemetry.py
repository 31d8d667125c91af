"""The service's own numbers for /metrics; one registry for each app, so that two in one process do not mix."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from rlvitals.contract.health import PartHealth


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

    def note_ping(self, well: bool, taken: bool) -> None:
        self.pings.labels("well" if well else "fail", "yes" if taken else "no").inc()

    def render(self) -> bytes:
        """The Prometheus text format."""
        return generate_latest(self.registry)
