"""Whatever comes as a batch, it is read, refused by line and field, or refused as a whole: nothing else."""

from __future__ import annotations

import gzip
import json
import math

from hypothesis import strategies as st

from rlvitals.contract import codec
from rlvitals.contract.alert import Alert
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.command import Command, Outcome
from rlvitals.contract.report import Receipt, ReportBatch, RunInfo
from rlvitals.contract.wire import to_wire
from rlvitals_monitor.document import JSON, NDJSON, Document, read_columns, read_lines, unpack
from rlvitals_monitor.errors import ServiceError
from tests.fuzz.budget import attack
from tests.fuzz.mutation import damaged

BATCH = {
    "run": {"id": "r1", "config": {"a": [1, {"b": None}]}, "tags": ["x"], "knobs": {}},
    "attempt": "a",
    "writer": "main",
    "names": ["a", "b", "c", "d", "e"],
    "rows": [[1, 1, 1e9, "NaN", "Infinity", "-Infinity", None, 0.5], [2, 2, 1e9, 1, 2, 3, 4, 5]],
    "missing": {"1": {"d": "not asked"}},
    "extremes": {"1": {"a": {"value": "NaN", "position": 3}}},
    "texts": [{"seq": 3, "step": 1, "sample": 0, "completion": "\ud800"}],
    "histograms": [{"seq": 4, "step": 1, "metric": "a", "edges": [0, 1], "counts": [3]}],
    "events": [{"seq": 5, "kind": "note", "time_s": 1, "payload": {"x": 1}}],
    "outcomes": [{"seq": 6, "command_id": "c", "state": "applied"}],
    "heartbeat": {"time_s": 1, "phase": "update", "last_step": 2},
}
COLUMNS = json.dumps(BATCH).encode()
LINES = b"\n".join(
    json.dumps({"seq": seq, "step": seq, "time_s": 1e9, "values": {"m": value, "n": None}}).encode()
    for seq, value in enumerate((0.5, "NaN", "Infinity", "-Infinity"))
)
REFUSED = (DecodeError, ServiceError)


def check(document: Document) -> None:
    """What was read survives the way out and back, each of the four kinds of number as itself."""
    wire = to_wire(document.batch)
    again = read_columns(codec.dumps(wire), 1 << 20).batch
    assert repr(to_wire(again)) == repr(wire)
    for refusal in document.refused:
        assert refusal.reason
        assert refusal.line >= 0


def test_columns() -> None:
    def read(body: bytes) -> None:
        try:
            document = read_columns(body, 20_000)
        except REFUSED:
            return
        check(document)

    attack(damaged([COLUMNS, COLUMNS * 2, b"[]", b"NaN"]), read, name=JSON)


def test_lines() -> None:
    def read(body: bytes) -> None:
        try:
            document = read_lines(body, {"run": "r1"}, 20_000)
        except REFUSED:
            return
        check(document)

    attack(damaged([LINES, b'{"run": {"id": "r9"}, "attempt": "x"}\n' + LINES, COLUMNS]), read, name=NDJSON)


def test_gzip() -> None:
    def read(body: bytes) -> None:
        try:
            assert len(unpack(body, "gzip", 4096)) <= 4096
        except ServiceError:
            return

    bomb = gzip.compress(b"\0" * (1 << 20))
    packed = gzip.compress(LINES)
    attack(damaged([packed, packed * 3, bomb, gzip.compress(bomb), b""]), read, name="gzip")


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "2026-01-01T00:00:00Z", "r1", "applied", "firing"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "run", "kind", "state", "seq", "at", "values", "x"]), inner, max_size=5
        )
    ),
    max_leaves=12,
)


def test_any_json_is_a_contracts_type_or_is_refused_with_its_field() -> None:
    def read(value: object) -> None:
        for kind in (ReportBatch, RunInfo, Receipt, Command, Outcome, Alert):
            try:
                made = codec.decode(kind, value)
            except DecodeError:
                continue
            assert codec.dumps(codec.decode(kind, codec.loads(codec.dumps(made)))) == codec.dumps(made)

    attack(JSON_VALUES, read, name="contract types")


def test_numbers_are_read_back_as_what_they_were() -> None:
    def there_and_back(number: float) -> None:
        back = codec.decode_number(codec.loads(codec.dumps(number)))
        assert repr(back) == repr(number) or (math.isnan(back) and math.isnan(number))

    attack(st.floats(), there_and_back, name="numbers")
