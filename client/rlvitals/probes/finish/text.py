"""What token ids say about the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlvitals.probes.finish.tables import NO_COMPLETIONS, NO_TEXT, Family, Finding

if TYPE_CHECKING:
    from rlvitals.probes.tally import Tally

NOT_READ = "no completion of this step was among those that are read in full"
NO_LETTERS = "no letter in the completions that were read in full"
NO_GRAMS = "no completion that was read in full has four tokens"
LEAST_LETTERS = 200
FEW_LETTERS = f"fewer than {LEAST_LETTERS} letters, too few to compare scripts"

SCRIPTS = (
    "latin",
    "han",
    "kana",
    "hangul",
    "cyrillic",
    "greek",
    "arabic",
    "hebrew",
    "devanagari",
    "thai",
    "other",
)
"""By which letters are counted; ``other`` is every script without a name of its own here."""

_SHARES = {f"text.script_{name}_share": (f"script.{name}", "script.letters", 1.0, NO_LETTERS) for name in SCRIPTS}


def _content(tally: Tally) -> Iterator[Finding]:
    """Rates over all tokens and over those that were spelt add up, since no character is in both counts."""
    counts = tally.counts
    if "content.controls" not in counts:
        return
    tokens, spelt = counts["content.tokens"], counts["content.spelt_tokens"]
    across = counts["content.spelt_controls"] / spelt if spelt else 0.0
    yield "text.control_char_per_1k", 1000 * (counts["content.controls"] / tokens + across) if tokens else NO_TEXT
    yield "text.zero_width_per_1k", 1000 * counts["content.invisibles"] / spelt if spelt else NOT_READ


def _drift(tally: Tally) -> Iterator[Finding]:
    """Total variation distance between the scripts of this step and those of the run's first steps."""
    if "script.letters" not in tally.counts or "script.baseline.latin" not in tally.counts:
        return
    now = [tally.counts[f"script.{name}"] for name in SCRIPTS]
    then = [tally.counts[f"script.baseline.{name}"] for name in SCRIPTS]
    letters, first = sum(now), sum(then)
    if min(letters, first) < LEAST_LETTERS:
        yield "text.script_drift", FEW_LETTERS
        return
    yield "text.script_drift", sum(abs(a / letters - b / first) for a, b in zip(now, then, strict=True)) / 2


def _findings(tally: Tally) -> Iterator[Finding]:
    yield from _content(tally)
    yield from _drift(tally)


TEXT = Family(
    quotients={
        "text.invalid_utf8_per_1k": ("text.errors", "text.tokens", 1000.0, NO_TEXT),
        "text.invalid_utf8_completions": ("text.error_completions", "text.completions", 1.0, NO_COMPLETIONS),
        "text.literal_replacement_per_1k": ("text.literals", "text.tokens", 1000.0, NO_TEXT),
        "text.cut_char_completions": ("text.tail_completions", "text.completions", 1.0, NO_COMPLETIONS),
        "text.never_trained_rate": ("text.never_trained", "text.tokens", 1.0, NO_TEXT),
        "text.byte_piece_ratio": ("text.byte_pieces", "text.tokens", 1.0, NO_TEXT),
        "text.byte_fallback_ratio": ("text.byte_fallback", "text.tokens", 1.0, NO_TEXT),
        "text.id0_share": ("text.id0", "text.tokens", 1.0, NO_TEXT),
        "text.special_inside": ("content.special_completions", "content.completions", 1.0, NO_COMPLETIONS),
        **_SHARES,
        "text.foreign_script_share": ("script.foreign", "script.prompted_letters", 1.0, NO_LETTERS),
        "text.repetition_4gram": ("repetition.repeated", "repetition.grams", 1.0, NO_GRAMS),
        "text.looping_completions": ("repetition.looping", "repetition.completions", 1.0, NOT_READ),
        "text.compression_ratio": ("repetition.text_bytes", "repetition.packed_bytes", 1.0, NOT_READ),
        "text.duplicate_rate": ("duplicates.found", "duplicates.completions", 1.0, NO_COMPLETIONS),
    },
    counts={
        "text.invalid_utf8_count": ("text.errors",),
        "text.replacement_char_count": ("text.errors", "text.literals"),
        "text.decoded_replacement_count": ("text.decoded",),
        "text.out_of_range_count": ("text.out_of_range",),
    },
    extremes={"text.longest_run": ("maxima", "repetition.tokens", NO_TEXT)},
    top_ids={"text.top_id_share": ("text.tokens", NO_TEXT)},
    witnesses={
        "text.invalid_utf8_count": "text.worst_errors",
        "text.control_char_per_1k": "content.worst_controls",
        "text.zero_width_per_1k": "content.worst_invisibles",
        "text.special_inside": "content.worst_special",
        "text.foreign_script_share": "script.worst_foreign",
        "text.repetition_4gram": "repetition.worst_grams",
        "text.compression_ratio": "repetition.worst_packing",
        "text.duplicate_rate": "duplicates.worst_group",
    },
    findings=_findings,
)
