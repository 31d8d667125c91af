"""What stands behind the tokens of a kept completion, within bounds and as both databases can keep it."""

from __future__ import annotations

import re

from rlvitals.contract import codec
from rlvitals.contract.codec import DecodeError
from rlvitals.contract.report import TokenDetail

PIECES_MAX = 4_096
PIECE_BYTES_MAX = 256
SCORES_MAX = 8
SCORED_TOKENS_MAX = 4_096

_ID = re.compile(r"[0-9]{1,10}")
_NAME = re.compile(r"[a-z_]{1,32}")
_BYTES = re.compile(r"([0-9a-f]{2})*")


def fault(detail: TokenDetail | None) -> str:
    """Why it cannot be kept; empty where it can."""
    if detail is None:
        return ""
    if max(len(detail.pieces), len(detail.kinds)) > PIECES_MAX:
        return f"expected at most {PIECES_MAX} tokens.pieces and tokens.kinds"
    if not all(_ID.fullmatch(token_id) for token_id in (*detail.pieces, *detail.kinds)):
        return "expected token ids as the names of tokens.pieces and tokens.kinds"
    if any(len(piece) > 2 * PIECE_BYTES_MAX or not _BYTES.fullmatch(piece) for piece in detail.pieces.values()):
        return f"expected tokens.pieces of at most {PIECE_BYTES_MAX} bytes in hexadecimal digits"
    if not all(map(_NAME.fullmatch, (*detail.kinds.values(), *detail.scores))):
        return "expected small letters in the names of tokens.kinds and tokens.scores"
    if len(detail.scores) > SCORES_MAX or any(len(v) > SCORED_TOKENS_MAX for v in detail.scores.values()):
        return f"expected at most {SCORES_MAX} tokens.scores of {SCORED_TOKENS_MAX} values"
    return ""


def read(stored: object) -> TokenDetail | None:
    """What `codec.encode` made of it; None where there is none, or one that a newer version wrote otherwise."""
    try:
        return None if stored is None else codec.decode(TokenDetail, stored)
    except DecodeError:
        return None
