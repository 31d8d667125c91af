"""What damaged text becomes in a vocabulary, told where the data's checks find it."""

from __future__ import annotations

from typing import Any

import rlvitals
from rlvitals.preflight.data_faults import Fault
from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.garble import spell_damage
from tests.client.preflight.chatml import build, facts

DAMAGED: Any = [{"prompt": "fine"}, {"prompt": "\ufeffHi"}, {"prompt": "a\ufffdb"}, {"prompt": "a\r\nb"}]


def test_each_kind_is_spelt_by_the_tokenizers_own_ids() -> None:
    tokens = facts()
    spelt = spell_damage(tokens)
    assert str(tokens.encode("\ufeff")[0]) in spelt[Fault.BOM_INSIDE]
    assert str(tokens.encode("\ufffd")[-1]) in spelt[Fault.REPLACEMENT]
    assert Fault.SURROGATE not in spelt
    assert spell_damage(None) == {}


def test_a_fault_is_told_once_with_its_row_and_its_ids() -> None:
    report = rlvitals.preflight(tokenizer=build(), data=DAMAGED)
    warned = {f.check: f for f in report.at_least(Verdict.WARN)}
    assert [check for check in ("D2", "D4", "D9") if check in warned] == ["D2", "D4", "D9"]
    assert not {"T17", "T18"} & {f.check for f in report.findings}
    ids = facts().encode("\ufffd")
    assert warned["D4"].where.endswith(":3")
    assert f"{ids[0]}" in warned["D4"].evidence
    assert "the model can reproduce it" in warned["D4"].evidence


def test_without_a_tokenizer_the_fault_is_told_all_the_same() -> None:
    report = rlvitals.preflight(data=DAMAGED)
    assert report.of_check("D4")[0].verdict is Verdict.WARN
    assert "here:" not in report.of_check("D4")[0].evidence
