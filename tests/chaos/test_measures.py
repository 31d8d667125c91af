"""What the chaos itself measures by."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.chaos.faults import KINDS, plan
from tests.chaos.trainer import starved_s, whole_lines, without_core_s


def test_a_trainer_without_a_core_is_not_taken_for_one_that_waits_for_us() -> None:
    me = str(threading.get_native_id())
    before = {me: 1.0, "sender": 5.0, "another": 5.0}
    assert starved_s(before, {me: 3.0, "sender": 5.5, "another": 5.25}) == 2.5, "of the others the longest"
    assert starved_s(before, before) == 0
    assert starved_s({}, {me: 1.0, "new": 2.0}) == 3.0
    assert starved_s({}, {}) == 0, "where the kernel does not tell, all is waiting"
    assert starved_s({}, without_core_s()) >= 0


def test_the_end_of_a_ledger_is_read_as_whole_lines_also_where_a_kill_tore_the_last(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.write_text("".join(f"line {number}\n" for number in range(100)) + "to")
    assert whole_lines(ledger)[-1] == "line 99"
    assert whole_lines(ledger, 25) == ["line 98", "line 99"]
    assert whole_lines(ledger, 10_000) == whole_lines(ledger)


def test_fifty_rounds_from_any_seed_on_have_every_kind_of_fault() -> None:
    for first in range(1, 200):
        met = {kind for seed in range(first, first + 50) for kind in plan(seed, 1.0).kinds}
        assert met == set(KINDS), first
