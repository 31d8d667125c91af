"""What is written: characters, special tokens, scripts, repetition; N = tokens that the policy chose.

A metric that is read *in full* puts together the text of some completions from the tokens' own bytes; which ones
is decided by their number in the step, so that every part of a step looks at the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

IDS = "(B, T) token ids and the tokens that the policy chose"
SPELT = "text of the completions that are read in full"
NO_TOKEN = "Missing where the policy chose no token."
NO_COMPLETION = "Missing without a completion; an empty one counts as healthy."
NOT_SPELT = "Missing where none of the completions read in full has anything to count."

_SCRIPTS: Mapping[str, str] = {
    "latin": "Latin",
    "han": "Chinese characters (also of Japanese)",
    "kana": "Hiragana and Katakana",
    "hangul": "Hangul",
    "cyrillic": "Cyrillic",
    "greek": "Greek; a letter that stands alone, as in a formula, does not count",
    "arabic": "Arabic",
    "hebrew": "Hebrew",
    "devanagari": "Devanagari",
    "thai": "Thai",
    "other": "all other scripts together",
}


def _script(name: str, told: str) -> Metric:
    return Metric(
        name=f"text.script_{name}_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning=f"Share of letters in {told}.",
        formula="letters of the script / letters (category L)",
        shape=SPELT,
        edge="Combining vowel signs and mathematical alphabets are no letters. " + NOT_SPELT,
        source="Unicode scripts",
    )


WRITING: tuple[Metric, ...] = (
    Metric(
        name="text.control_char_per_1k",
        unit="{char}/1000",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Control characters per 1,000 tokens: C0 without tab and line ends, C1, bidirectional embeddings and "
            "isolates, byte order marks, private use, noncharacters."
        ),
        formula="1000 * (inside tokens / N + spelt across tokens / tokens read in full)",
        shape=IDS,
        edge=(
            "Characters that lie whole in a token are counted in every completion, those spelt across tokens in "
            f"the completions that are read in full. {NO_TOKEN}"
        ),
        source="Unicode general categories Cc, Cf, Co, Cn",
    ),
    Metric(
        name="text.zero_width_per_1k",
        unit="{char}/1000",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning=(
            "Zero-width characters and variation selectors per 1,000 tokens where no emoji and no writing system "
            "puts them."
        ),
        formula="1000 * odd ones / tokens read in full",
        shape=SPELT,
        edge=(
            "Healthy: joiners between emoji or behind a letter of a joining script, selectors right behind a "
            "symbol, emoji, keycap base or ideograph, tags behind the black flag, zero-width spaces in Thai, Lao, "
            f"Tibetan, Myanmar or Khmer, direction marks beside right-to-left letters. {NOT_SPELT}"
        ),
        source="Unicode TR 51 (emoji sequences), RFC 5892 appendix A (joiners)",
    ),
    Metric(
        name="text.special_inside",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions with a special token in the middle that is no stop id nor allowed there.",
        formula="completions with such a token before their last token / completions",
        shape=IDS,
        edge=f"A special token at the very end is how a completion ends. {NO_COMPLETION}",
    ),
    *(_script(name, told) for name, told in _SCRIPTS.items()),
    Metric(
        name="text.foreign_script_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of letters whose script is neither Latin nor holds a tenth of the prompt's letters.",
        formula="foreign letters / letters",
        shape=f"{SPELT}, and their prompts",
        edge=f"Missing without prompts. {NOT_SPELT}",
    ),
    Metric(
        name="text.script_drift",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="How far the shares of scripts have moved from the run's own first steps; 0 none, 1 all letters.",
        formula="sum |share - share in the first steps| / 2",
        shape=SPELT,
        edge="Missing during the first steps, after a restart, and below 200 letters.",
        source="total variation distance",
    ),
    Metric(
        name="text.repetition_4gram",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of 4-grams that occurred before in the same completion, among its last 512 tokens.",
        formula="sum (4-grams - distinct 4-grams) / sum 4-grams",
        shape="(B, T) token ids of the completions that are read in full",
        edge=(
            "Tokens that spell one character together count as one. A tool's token breaks a 4-gram. Missing where "
            "no completion has four tokens in a row."
        ),
        source="seq-rep-n, Welleck et al. 2019",
    ),
    Metric(
        name="text.looping_completions",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions that loop.",
        formula="completions with 4-gram repetition > 0.5 or compression ratio > 10 / completions read in full",
        shape="(B, T) token ids of the completions that are read in full",
        edge="By 4-grams alone where the text is not known. Missing where no completion was read in full.",
        source="slime's repetition_frac, with 4-grams beside it",
    ),
    Metric(
        name="text.longest_run",
        unit="{token}",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Longest run of one id in any completion, with the id and where it starts.",
        formula="max run length",
        shape=IDS,
        edge=f"A tool's token ends a run; 1 where nothing repeats. {NO_TOKEN}",
    ),
    Metric(
        name="text.compression_ratio",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="How well the last 10,000 characters of each completion pack; prose packs 2 to 3 times, loops 10.",
        formula="sum UTF-8 bytes / sum zlib bytes",
        shape=SPELT,
        edge=f"Below 1 for very short texts. {NOT_SPELT}",
        source="slime's repetition_frac (zlib)",
    ),
    Metric(
        name="text.duplicate_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions that repeat another one of their group, id by id.",
        formula="sum (size - distinct) / sum size over groups",
        shape=f"{IDS}, in groups of neighbours",
        edge="Two empty completions are duplicates. Missing for groups of one.",
    ),
)
