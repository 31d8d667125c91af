"""Which ids are bytes, special or without a token."""

from __future__ import annotations

from typing import Any

from rlvitals.preflight.census import tell_census
from rlvitals.preflight.finding import Verdict
from rlvitals.probes.tokens import TokenTable
from tests.client.preflight.chatml import ROWS, build, only


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
