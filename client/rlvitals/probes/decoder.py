"""How a tokenizer's own decode shows what is not well-formed: decoders differ, for the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Damage(str, Enum):
    """How many U+FFFD a decoder prints for bytes that are no text."""

    SUBPART = "one for each maximal ill-formed subpart"  # byte-level decoders, tiktoken, tekken
    RUN = "one for each byte of a run of byte pieces that is not well-formed as a whole"  # ByteFallback
    BYTE = "one for each byte that is part of no character"  # sentencepiece
    IGNORED = "none: such bytes are left out"  # errors="ignore"
    SPELT = "none: byte pieces are printed by name"  # <0xE4>
    SEEN = "seen only by decoding"


class Dropped(str, Enum):
    """What becomes of the bytes before and after an id that is no ordinary token."""

    JOINS = "they join"
    BREAKS = "they stay apart"
    RAISES = "decode raises"
    SHOWN = "it is shown as text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """``special`` tells of special tokens, ``unassigned`` of ids without a token."""

    damage: Damage = Damage.SUBPART
    special: Dropped = Dropped.SHOWN
    unassigned: Dropped = Dropped.JOINS
