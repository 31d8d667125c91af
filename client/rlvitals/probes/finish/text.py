"""What token ids say about the text."""

from __future__ import annotations

from rlvitals.probes.finish.tables import NO_COMPLETIONS, NO_TEXT, Family

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
    },
    counts={
        "text.invalid_utf8_count": ("text.errors",),
        "text.replacement_char_count": ("text.errors", "text.literals"),
        "text.out_of_range_count": ("text.out_of_range",),
    },
    top_ids={"text.top_id_share": ("text.tokens", NO_TEXT)},
    witnesses={"text.invalid_utf8_count": "text.worst_errors"},
)
