"""Which ids are bytes, special or without a token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlvitals.preflight.census import read_table, tell_census
from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.vocabulary_fit import check_added_round_trip, check_hijack
from rlvitals.probes.tokens import TokenTable
from tests.client.preflight.chatml import ROWS, build, only, verdicts


def test_the_classes_are_told_with_their_ranges() -> None:
    tokenizer = build(added=("<tool_call>", "<|reserved_special_token_1|>"))
    finding = only(tell_census(TokenTable.read(tokenizer, ROWS)))
    assert finding.verdict is Verdict.INFO
    assert "256 single bytes, ids 0-255" in finding.evidence
    assert "special 3 (259-261)" in finding.evidence
    assert "added 1 (262)" in finding.evidence
    assert "reserved 1 (263)" in finding.evidence
    assert "unassigned 24 (264-287)" in finding.evidence


def test_the_range_that_a_popular_article_calls_bytes_holds_none(encoding: Any) -> None:
    finding = next(iter(tell_census(TokenTable.read(encoding, 151_936))))
    assert "256 single bytes, ids 0-255" in finding.evidence


@pytest.mark.parametrize(
    ("name", "rows", "told"),
    [
        ("qwen2_5_trim", 151_936, "special 14 (151643-151656); added 8 (151657-151664)"),
        ("qwen3_trim", 151_936, "special 14 (151643-151656); added 12 (151657-151668)"),
        ("gpt2_trim", 50_257, "256 single bytes, ids 0-255"),
        ("mistral_v1_trim", 32_000, "byte fallback: the bytes <0x00> to <0xFF> are ids 3-258"),
    ],
)
def test_trimmed_real_tokenizers_tell_their_true_ids(name: str, rows: int, told: str, research: Path) -> None:
    tokens = read_tokenizer(research / "fixtures" / f"{name}.json")
    finding = next(iter(tell_census(read_table(tokens, rows))))
    assert told in finding.evidence
    assert verdicts(check_hijack(tokens)) == verdicts(check_added_round_trip(tokens)) == [Verdict.OK]
