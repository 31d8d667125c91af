"""Real tokenizers: against golden counts, and against their own decode on random, damaged and healthy text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlvitals.probes.arrays import Whole
from rlvitals.probes.decoder import Dropped
from rlvitals.probes.decoding import decoded_replacements, undecodable
from rlvitals.probes.scan import RowCounts, code_rows, scan
from rlvitals.probes.text import pack
from rlvitals.probes.token_classes import TokenClass
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import find_source
from tests.client.probes import healthy, real

DRAW = 20240131
ADDED = (TokenClass.SPECIAL, TokenClass.ADDED, TokenClass.RESERVED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Real:
    """A real tokenizer, how it encodes, and its table with the rows of a released model."""

    name: str
    tokenizer: Any
    encode: Callable[[str], list[int]]
    table: TokenTable

    def decode(self, ids: list[int], skip: bool) -> str:
        return find_source(self.tokenizer).decode(ids, skip)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    """Empty where the counts that were taken from the families' own decoders do not lie beside the repository."""
    path = Path(__file__).resolve().parents[4] / "shared" / "research" / "tokenizers" / "golden.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["families"]) if path.exists() else {}


@pytest.fixture(scope="module", params=real.NAMES)
def one(request: pytest.FixtureRequest, golden: dict[str, Any]) -> Real:
    name = request.param
    try:
        tokenizer = real.load(name)
    except real.Unavailable as error:
        pytest.skip(f"NOT COMPARED WITH THE REAL TOKENIZER {name}: {error}")
    native = getattr(tokenizer, "_model", None)
    encode = tokenizer.encode
    if name.startswith("tekken"):
        encoder = lambda text: list(encode(text, bos=False, eos=False))  # noqa: E731
    elif name.startswith("mistral"):
        encoder = native.encode
        tokenizer = real.rebuilt(native)
    elif hasattr(tokenizer, "get_added_tokens_decoder"):
        encoder = lambda text: list(encode(text, add_special_tokens=False).ids)  # noqa: E731
    else:
        encoder = encode
    rows = golden[name]["rows"] if golden else None
    return Real(name=name, tokenizer=tokenizer, encode=encoder, table=TokenTable.read(tokenizer, rows))


def counted(table: TokenTable, ids: Whole, lengths: Whole) -> RowCounts:
    mask = np.arange(ids.shape[1]) < lengths[:, None]
    return scan(table.maps, code_rows(table.map_of, table.slots(ids), mask))


def assert_exact(table: TokenTable, decode: Callable[[list[int], bool], str], rows: list[list[int]]) -> None:
    ids, lengths = pack(rows)
    for skip in (False, True):
        expected = [decode(row, skip).count("\ufffd") for row in rows]
        assert decoded_replacements(table, ids, lengths, skip_special=skip).tolist() == expected


def damaged(one: Real) -> list[list[int]]:
    """Healthy ids cut, shuffled, sprinkled with byte pieces and with special tokens."""
    draw = np.random.default_rng(DRAW)
    pieces = np.flatnonzero(
        (one.table.classes >= TokenClass.BYTE_HIGH) & (one.table.classes <= TokenClass.FRAG_ILL)
    )
    special = np.flatnonzero(
        np.isin(one.table.classes, (TokenClass.SPECIAL, TokenClass.ADDED, TokenClass.RESERVED))
    )
    rows = []
    for text in healthy.SENTENCES.values():
        ids = np.asarray(one.encode(text))
        cut = np.sort(draw.integers(0, ids.size + 1, 2))
        rows.append(ids[cut[0] : cut[1]].tolist())
        rows.append(draw.permutation(ids).tolist())
        for others in (pieces, special):
            if others.size:
                rows.append(np.where(draw.random(ids.size) < 0.1, draw.choice(others, ids.size), ids).tolist())
    return rows


def test_the_table_agrees_with_the_decoder(one: Real) -> None:
    assert not one.table.mismatch


def test_classes_and_counts_are_the_golden_ones(one: Real, golden: dict[str, Any]) -> None:
    if not golden:
        pytest.skip("NOT COMPARED WITH THE GOLDEN COUNTS: ../shared/research/tokenizers is absent")
    known, table = golden[one.name], one.table
    assert table.census() == known["class_counts"]
    assert hashlib.sha256(table.classes[: table.rows].tobytes()).hexdigest() == known["class_sha256"]
    wrong = {}
    for name, case in known["cases"].items():
        ids, lengths = pack([case["ids"]])
        found = counted(table, ids, lengths)
        kinds = table.classes[table.slots(ids[0])].tolist()
        if (kinds, [int(found.errors[0]), int(found.tails[0]), int(found.literals[0])]) != (
            case["classes"],
            case["monitor"],
        ):
            wrong[name] = found
        for skip, way in ((False, "keep"), (True, "skip")):
            raises = not isinstance(case[f"decode_{way}"], str)
            count = int(decoded_replacements(table, ids, lengths, skip_special=skip)[0])
            if bool(undecodable(table, ids, lengths, skip_special=skip)[0]) != raises:
                wrong[name, way, "raises"] = raises
            if not raises and count != case[f"fffd_{way}"]:
                wrong[name, way] = count
    assert not wrong


def test_healthy_text_in_many_scripts_has_nothing_ill_formed(one: Real) -> None:
    ids, lengths = pack([one.encode(text) for text in healthy.SENTENCES.values()])
    found = counted(one.table, ids, lengths)
    assert not found.errors.any()
    assert not found.tails.any()
    assert not found.literals.any()
    assert not decoded_replacements(one.table, ids, lengths).any()


def test_damaged_text_is_counted_as_its_own_decode_prints_it(one: Real) -> None:
    assert_exact(one.table, one.decode, damaged(one))


def test_random_ids_are_counted_as_their_own_decode_prints_them(one: Real) -> None:
    table = one.table
    draw = np.random.default_rng(DRAW + 1)
    ids = np.arange(table.rows)
    if table.decoders[0].unassigned is Dropped.RAISES:
        ids = ids[table.classes[: table.rows] != TokenClass.UNASSIGNED]
    elif ids.size:
        ids = np.concatenate([ids, np.arange(table.rows, table.rows + 64)])
    assert_exact(table, one.decode, draw.choice(ids, (48, 96)).tolist())


def test_ill_formed_subparts_are_those_of_pythons_decoder_on_the_joined_bytes(one: Real) -> None:
    draw = np.random.default_rng(DRAW + 2)
    ordinary = np.flatnonzero(~np.isin(one.table.classes[: one.table.rows], (*ADDED, TokenClass.UNASSIGNED)))
    ids = draw.choice(ordinary, (48, 96))
    found = counted(one.table, ids, np.full(48, 96))
    joined = [b"".join(one.table.pieces[i] for i in row) for row in ids.tolist()]
    expected = [text.decode("utf-8", "replace").count("\ufffd") for text in joined]
    assert (found.errors + found.tails + found.literals).tolist() == expected
