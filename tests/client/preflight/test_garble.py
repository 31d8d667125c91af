"""T17 and T18: damaged text, told with what it becomes."""

from __future__ import annotations

import pytest

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.garble import check_bom, check_garble
from rlvitals.preflight.passage import Passage
from tests.client.preflight.chatml import facts, only, verdicts


def _texts(*texts: str) -> list[Passage]:
    return [Passage(text=text, where=f"d.jsonl:{line}") for line, text in enumerate(texts, 1)]


def test_t17_a_bom_is_told_with_its_ids_and_line() -> None:
    tokens = facts()
    finding = only(check_bom(tokens, _texts("fine", "\ufeffHello")))
    assert finding.verdict is Verdict.WARN
    assert finding.where == "d.jsonl:2"
    assert "1 of 2 texts" in finding.evidence
    assert str(tokens.encode("\ufeff")[0]) in finding.evidence


def test_t17_a_zero_width_joiner_is_no_bom_and_no_data_no_judgement() -> None:
    assert verdicts(check_bom(facts(), _texts("a\u200db"))) == [Verdict.OK]
    assert verdicts(check_bom(facts(), [])) == [Verdict.SKIPPED]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a\ufffdb", "replacement"),
        ("a\x01b", "control"),
        ("a\x85b", "control"),
        ("a\ufdd0b", "noncharacter"),
        ("a\ue000b", "private use"),
        ("a\u202eb", "bidi"),
        ("a\ud83db", "surrogate"),
        ("a\r\nb", "crlf"),
        ("é".encode().decode("latin-1"), "mojibake"),
        ("锟斤拷", "mojibake"),
    ],
)
def test_t18_each_kind_is_told_with_its_first_line(text: str, kind: str) -> None:
    finding = only(check_garble(facts(), _texts("fine", text)))
    assert finding.verdict is Verdict.WARN
    assert finding.subject == f"Garbled data: {kind}"
    assert finding.where == "d.jsonl:2"


@pytest.mark.parametrize("text", ["a\tb\nc", "naïve café, São Paulo", "מודל \u200f", "拷打", "😀\u200d🔥"])
def test_t18_healthy_text_of_any_script_passes(text: str) -> None:
    assert verdicts(check_garble(facts(), _texts(text))) == [Verdict.OK]


def test_t18_says_which_ids_a_model_would_write() -> None:
    tokens = facts()
    finding = only(check_garble(tokens, _texts("\ufffd")))
    assert "the model can reproduce it" in finding.evidence
    assert str(tokens.encode("\ufffd")[0]) in finding.evidence
    assert "TypeError" in only(check_garble(tokens, _texts("\ud83d"))).evidence


def test_t18_without_data_nothing_is_judged() -> None:
    assert verdicts(check_garble(facts(), [])) == [Verdict.SKIPPED]
