"""What a kept completion carries of its tokens: bytes that a decoder would have replaced, within bounds."""

from __future__ import annotations

import math

import pytest

from rlvitals.contract import codec
from rlvitals.contract.report import TokenDetail
from rlvitals.integrations.token_details import PIECES_MAX, SCORED_TOKENS_MAX, token_detail
from rlvitals.probes.tokens import TokenTable
from tests.client.probes import qwen


@pytest.fixture(scope="module")
def table() -> TokenTable:
    return TokenTable.read(qwen.encoding(), qwen.ROWS)


def test_a_character_that_was_cut_in_two_is_told_by_its_bytes(table: TokenTable) -> None:
    two_bytes = next(i for i, piece in table.pieces.items() if piece == b"\xe4\xbd")
    detail = token_detail(table, [two_bytes, 9707, two_bytes])
    assert detail is not None
    assert detail.pieces == {str(two_bytes): "e4bd", "9707": b"Hello".hex()}
    assert detail.kinds == {}


def test_ids_without_a_token_have_no_bytes_and_say_what_they_are(table: TokenTable) -> None:
    detail = token_detail(table, [151_645, 151_900, qwen.ROWS + 5, -1])
    assert detail is not None
    assert detail.pieces["151645"] == b"<|im_end|>".hex()
    beyond = str(qwen.ROWS + 5)
    assert detail.kinds == {"151645": "special", "151900": "unassigned", beyond: "out_of_range"}
    assert set(detail.pieces) == {"151645"}


def test_a_long_completion_is_told_within_bounds(table: TokenTable) -> None:
    ids = [*range(20_000)] * 2
    detail = token_detail(table, ids, {"logp": [0.5] * len(ids)})
    assert detail is not None
    assert len(detail.pieces) == PIECES_MAX
    assert len(detail.scores["logp"]) == SCORED_TOKENS_MAX
    assert len(codec.dumps(detail)) < 128 * 1024


def test_scores_keep_nan_the_infinities_and_missing_apart_without_any_tokenizer() -> None:
    detail = token_detail(None, [1, 2, 3, 4], {"ref_logp": [math.nan, math.inf, -math.inf, None]})
    read = codec.decode(TokenDetail, codec.loads(codec.dumps(detail)))
    assert [str(v) for v in read.scores["ref_logp"]] == ["nan", "inf", "-inf", "None"]
    assert token_detail(None, [1, 2]) is None


def test_a_table_that_does_not_agree_with_its_tokenizer_tells_no_bytes() -> None:
    class Odd:
        """A tokenizer that is known by its decode alone."""

        def __len__(self) -> int:
            return 3

        def decode(self, ids: list[int], **_: object) -> str:
            return "".join("ab\ufffd"[i % 3] for i in ids)

    table = TokenTable.read(Odd(), 3)
    assert table.mismatch
    assert token_detail(table, [0, 1]) is None
