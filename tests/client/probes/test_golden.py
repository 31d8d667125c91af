"""Against counts that were taken from the families' own decoders."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import Family
from tests.client.probes import qwen


@pytest.fixture(scope="module")
def families(research: Path) -> dict[str, Any]:
    golden: dict[str, Any] = json.loads((research / "golden.json").read_text(encoding="utf-8"))
    return dict(golden["families"])


def assert_cases(table: TokenTable, cases: dict[str, Any]) -> None:
    wrong = {}
    for name, case in cases.items():
        _, rows = tally_text(table, *pack([case["ids"]]))
        found = [int(rows.utf8.errors[0]), int(rows.utf8.tails[0]), int(rows.utf8.literals[0])]
        if found != case["monitor"] or table.classes[case["ids"]].tolist() != case["classes"]:
            wrong[name] = (found, case["monitor"])
    assert not wrong


@pytest.mark.parametrize("family", ["qwen2_5", "qwen3"])
def test_the_full_qwen_vocabularies_have_the_golden_classes_and_counts(
    family: str, families: dict[str, Any], research: Path, encoding: Any
) -> None:
    trimmed = json.loads((research / "fixtures" / f"{family}_trim.json").read_text(encoding="utf-8"))
    added = tuple(
        AddedToken(t["content"], special=t["special"], normalized=t["normalized"]) for t in trimmed["added_tokens"]
    )
    golden = families[family]
    table = TokenTable.from_tokenizer(qwen.core(encoding, added), golden["rows"])
    assert not table.mismatch
    assert table.census() == golden["class_counts"]
    assert hashlib.sha256(table.classes[: table.rows].tobytes()).hexdigest() == golden["class_sha256"]
    assert_cases(table, golden["cases"])


def test_the_encoding_of_qwen3_6_has_the_golden_classes_and_counts(
    families: dict[str, Any], encoding: Any
) -> None:
    golden = families["qwen3_6"]
    table = TokenTable.from_tokenizer(qwen.encoding("qwen3.6-27b"), golden["rows"])
    assert not table.mismatch
    assert hashlib.sha256(table.classes[: table.rows].tobytes()).hexdigest() == golden["class_sha256"]
    assert_cases(table, golden["cases"])


@pytest.mark.parametrize("family", ["qwen2_5", "qwen3", "gpt2", "mistral_v1"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_the_small_real_tokenizers_have_the_golden_counts(
    family: str, wrapped: bool, families: dict[str, Any], research: Path
) -> None:
    path = str(research / "fixtures" / f"{family}_trim.json")
    core = Tokenizer.from_file(path)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path) if wrapped else core
    golden = families[family]
    table = TokenTable.from_tokenizer(tokenizer, golden["rows"])
    assert not table.mismatch
    assert table.family is (Family.BYTE_FALLBACK if family == "mistral_v1" else Family.BYTE_LEVEL)
    unassigned = 11
    usable = {
        name: case
        for name, case in golden["cases"].items()
        if all(
            core.id_to_token(i) for i, kind in zip(case["ids"], case["classes"], strict=True) if kind != unassigned
        )
    }
    assert len(usable) >= 31
    assert_cases(table, usable)
