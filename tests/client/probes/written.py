"""Small completions that every signal of what is written has something to say about."""

from __future__ import annotations

from functools import cache

import numpy as np

from rlvitals.probes.arrays import Whole
from rlvitals.probes.content import ContentTable, tally_content
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.scripts import ScriptBaseline
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import pack
from rlvitals.probes.tokens import TokenTable
from tests.client.probes.test_tokens import byte_fallback

HI = 257


@cache
def byte_table() -> ContentTable:
    """A vocabulary of an unknown token (id 0), the 256 bytes (ids 1 to 256), " hi" (257) and "a\ufffd" (258)."""
    return ContentTable.of(TokenTable.from_tokenizer(byte_fallback(), 300))


def spelt(*texts: str) -> tuple[Whole, Whole]:
    """Texts as bytes of `byte_table`, padded on the right, and their lengths."""
    return pack([[byte + 1 for byte in text.encode()] for text in texts])


def everything_written(mask_value: int) -> Tally:
    """One step of two completions, all of whose tokens (or none of them) the policy chose."""
    table, ids, lengths = byte_table(), np.full((2, 120), HI), np.full(2, 120 * mask_value)
    content = tally_content(table, ids, lengths, prompts=["hi", "hi"])
    first = ScriptBaseline(wanted=1).after(tally_content(table, ids, np.full(2, 120)))
    return (
        content + first.tally() + tally_repetition(ids, lengths, table=table) + tally_duplicates(ids, lengths, 2)
    )
