"""Which ids are bytes, special, added, reserved or without a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.spans import spans
from rlvitals.preflight.tokenizer_facts import TokenizerFacts
from rlvitals.probes.token_classes import TokenClass
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import Family

_SHOWN = (TokenClass.SPECIAL, TokenClass.ADDED, TokenClass.RESERVED, TokenClass.UNASSIGNED)


def tell_census(table: TokenTable) -> Iterator[Finding]:
    """The ids of each class as runs, and where the single bytes are. A table says it, no rule judges it."""
    classes = table.classes[: table.rows]
    told = [_bytes(table)]
    for kind in _SHOWN:
        ids = np.flatnonzero(classes == kind).tolist()
        told.append(f"{kind.name.lower()} {len(ids):,}" + (f" ({spans(ids)})" if ids else ""))
    yield Finding(check="T2", verdict=Verdict.INFO, subject="Ids by class", evidence="; ".join(told))
    if table.mismatch:
        yield Finding(
            check="T2",
            verdict=Verdict.INFO,
            subject="UTF-8 signals will be missing",
            evidence=table.mismatch,
        )


def _bytes(table: TokenTable) -> str:
    classes: Any = table.classes[: table.rows]
    if table.family is Family.BYTE_FALLBACK:
        alone = np.flatnonzero((classes == TokenClass.BYTE_ASCII) | (classes == TokenClass.BYTE_HIGH)).tolist()
        return f"byte fallback: the bytes <0x00> to <0xFF> are ids {spans(alone)}"
    if table.family is Family.PLAIN:
        return "no byte pieces"
    ordinary = {int(TokenClass.TEXT), *range(int(TokenClass.FRAG_OPEN), int(TokenClass.FRAG_ILL) + 1)}
    alone = [i for i, p in table.pieces.items() if len(p) == 1 and i < table.rows and int(classes[i]) in ordinary]
    fragments = int(np.count_nonzero((classes >= TokenClass.FRAG_OPEN) & (classes <= TokenClass.FRAG_ILL)))
    return f"byte level: {len(alone)} single bytes, ids {spans(alone)}; {fragments:,} pieces cut characters"


def read_table(tokens: TokenizerFacts, rows: int | None) -> TokenTable:
    """Raises TypeError for a tokenizer whose pieces can't be read."""
    return TokenTable.read(tokens.source, rows=rows)
