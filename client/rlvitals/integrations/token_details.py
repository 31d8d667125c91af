"""What stands behind the tokens of a completion that people may read: bytes that a decoder would have replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rlvitals.contract.report import TokenDetail
from rlvitals.probes.token_classes import NEVER_TRAINED, TokenClass
from rlvitals.probes.tokens import TokenTable

PIECES_MAX = 2_048
PIECE_BYTES_MAX = 128
SCORED_TOKENS_MAX = 2_048

_TOLD = (TokenClass.SPECIAL, TokenClass.ADDED, *NEVER_TRAINED)


def token_detail(
    table: TokenTable | None, ids: Sequence[int], scores: Mapping[str, Sequence[float | None]] | None = None
) -> TokenDetail | None:
    """Of the first `PIECES_MAX` different ids, and of the first `SCORED_TOKENS_MAX` tokens the scores.

    None where nothing can be said; without pieces where the table does not agree with its tokenizer.
    """
    pieces: dict[str, str] = {}
    kinds: dict[str, str] = {}
    if table is not None and not table.mismatch:
        for token_id in [i for i in dict.fromkeys(ids) if i >= 0][:PIECES_MAX]:
            kind = TokenClass(int(table.classes[min(token_id, table.rows)]))
            if kind in _TOLD:
                kinds[str(token_id)] = kind.name.lower()
            piece = table.pieces.get(token_id)
            if piece is not None:
                pieces[str(token_id)] = piece[:PIECE_BYTES_MAX].hex()
    told = {name: tuple(values[:SCORED_TOKENS_MAX]) for name, values in (scores or {}).items()}
    return TokenDetail(pieces=pieces, kinds=kinds, scores=told) if pieces or told else None
