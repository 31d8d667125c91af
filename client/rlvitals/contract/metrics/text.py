"""Text health from token ids, never from decoded strings; N = tokens that the policy chose."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse
from rlvitals.contract.metrics.writing import IDS, NO_COMPLETION, NO_TOKEN, WRITING

NO_BYTES = "Missing for a tokenizer without byte pieces and for one whose own decode the table did not reproduce."
UNICODE = "Unicode 15, section 3.9 (maximal subparts), as Python's errors='replace' counts"

TEXT: tuple[Metric, ...] = (
    Metric(
        name="text.invalid_utf8_count",
        unit="{sequence}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning=(
            "Ill-formed UTF-8 subparts in the byte stream of the ids; a character cut by the length limit is none."
        ),
        formula="UTF-8 automaton over token bytes",
        shape=IDS,
        edge="A special, unassigned or out-of-range id inside a character is an error; a tool's token is a cut. "
        + NO_BYTES,
        source=UNICODE,
    ),
    Metric(
        name="text.invalid_utf8_per_1k",
        unit="{sequence}/1000",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Ill-formed UTF-8 subparts per 1,000 tokens; exactly 0 on healthy text.",
        formula="1000 * errors / N",
        shape=IDS,
        edge=f"{NO_TOKEN} {NO_BYTES}",
        source=UNICODE,
    ),
    Metric(
        name="text.invalid_utf8_completions",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions with ill-formed UTF-8.",
        formula="completions with errors / completions",
        shape=IDS,
        edge=f"{NO_COMPLETION} {NO_BYTES}",
        source=UNICODE,
    ),
    Metric(
        name="text.replacement_char_count",
        unit="{char}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning=(
            "U+FFFD by the canonical count (one per maximal ill-formed subpart) plus those that the model wrote."
        ),
        formula="errors + literals",
        shape=IDS,
        edge="A character cut at the end is not counted. " + NO_BYTES,
        source=UNICODE,
    ),
    Metric(
        name="text.decoded_replacement_count",
        unit="{char}",
        merge=Merge.SUM,
        worse=Worse.NEITHER,
        meaning=(
            "U+FFFD that the tokenizer's own decode prints: cuts are in it, and a byte-fallback decoder replaces "
            "whole runs of bytes."
        ),
        formula="count of U+FFFD in decode(ids, skip_special_tokens=True), without decoding",
        shape=IDS,
        edge=(
            "Special tokens left out, as for reward functions. For display; rules use the canonical count. "
            "Missing where only decoding would tell, and for ids on a device."
        ),
        source="the tokenizer's own decoder",
    ),
    Metric(
        name="text.literal_replacement_per_1k",
        unit="{char}/1000",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Well-formed U+FFFD characters that the model itself wrote, per 1,000 tokens.",
        formula="1000 * literals / N",
        shape=IDS,
        edge=f"Counted also where it is spelt across tokens. {NO_TOKEN} {NO_BYTES}",
        source=UNICODE,
    ),
    Metric(
        name="text.cut_char_completions",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning="Share of completions that end inside a character, as a length limit does; benign.",
        formula="tails / completions",
        shape=IDS,
        edge=f"Also where a tool's token follows. {NO_COMPLETION} {NO_BYTES}",
    ),
    Metric(
        name="text.never_trained_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of ids that no training ever touched: without a token, out of range, or reserved.",
        formula="(unassigned + out of range + reserved) / N",
        shape=IDS,
        edge="0 by construction where the sampler masks such ids. " + NO_TOKEN,
    ),
    Metric(
        name="text.out_of_range_count",
        unit="{token}",
        merge=Merge.SUM,
        worse=Worse.UP,
        meaning="Ids below 0 or beyond the embedding rows.",
        formula="count",
        shape=IDS,
        edge="Without the embedding's rows only ids up to the tokenizer's largest are in range.",
    ),
    Metric(
        name="text.byte_piece_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning=(
            "Share of tokens that are bytes or fragments of characters; high in healthy emoji and rare scripts."
        ),
        formula="(high bytes + fragments) / N",
        shape=IDS,
        edge=f"{NO_TOKEN} Missing for a tokenizer without byte pieces.",
    ),
    Metric(
        name="text.byte_fallback_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning=(
            "The popular name: explicit high-byte tokens where the tokenizer has byte fallback, else fragments."
        ),
        formula="high bytes / N with byte fallback, fragments / N in byte-level vocabularies",
        shape=IDS,
        edge=f"Compare with its own baseline only. {NO_TOKEN} Missing for a tokenizer without byte pieces.",
        source="popular articles; what it should mean per family is this project's",
    ),
    Metric(
        name="text.top_id_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of the most frequent id among all sampled tokens.",
        formula="max count / N",
        shape=IDS,
        edge="Exact in one process; a lower bound where more than 4,096 ids cross the wire. " + NO_TOKEN,
    ),
    Metric(
        name="text.id0_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning='Share of id 0; "!!!!" after NaN logits is id 0.',
        formula="count(id 0) / N",
        shape=IDS,
        edge=NO_TOKEN,
    ),
    *WRITING,
)
