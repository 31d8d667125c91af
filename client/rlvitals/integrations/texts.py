"""One generation's completions as text → a Tally: tokens, characters, scripts, loops, duplicates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlvitals import notices
from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import Guard
from rlvitals.probes.arguments import VocabularyError
from rlvitals.probes.arrays import Whole
from rlvitals.probes.content import ContentTable, tally_content
from rlvitals.probes.duplicates import METRIC as DUPLICATES
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.scripts import ScriptBaseline
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import TextRows, tally_text
from rlvitals.probes.token_cache import cache_folder
from rlvitals.probes.tokens import TokenRanges, TokenTable

TEXT_METRICS = tuple(metric.name for metric in METRICS if metric.family is Family.TEXT)
CUT_GROUPS = "not measured: a group's completions lie on several ranks"


@dataclass(slots=True)
class TextReader:
    """``content`` is None where the tokenizer cannot be read, for the reason ``no_table``."""

    content: ContentTable | None
    stop_ids: frozenset[int]
    group_size: int
    ranks: int = 1
    no_table: str = ""
    baseline: ScriptBaseline = field(default_factory=ScriptBaseline)

    @property
    def table(self) -> TokenTable | None:
        return self.content.tokens if self.content is not None else None

    def read(
        self, ids: Whole, chosen: Any, prompts: Sequence[Any] | None, *, first_sample: int, step: int
    ) -> tuple[Tally, TextRows | None]:
        """``ids`` (B, T), ``chosen`` lengths (B,) or a mask (B, T); ``step`` decides which are read in full.

        ``prompts`` is None where they are not known.
        """
        sample = RowSample.of_step(ids.shape[0] * self.ranks, ids.size * self.ranks, seed=step)
        found = self._duplicates(ids, chosen, first_sample)
        if self.content is None:
            found += tally_repetition(ids, chosen, sample=sample, sample_offset=first_sample)
            return Tally.absent(TEXT_METRICS, self.no_table) + found, None
        spelt = self.content.spell(ids, chosen, sample, sample_offset=first_sample)
        where: dict[str, Any] = {"spelt": spelt, "sample": sample, "sample_offset": first_sample}
        found += tally_repetition(ids, chosen, table=self.content, **where)
        texts = None if prompts is None else [plain_text(prompt) for prompt in prompts]
        content = tally_content(self.content, ids, chosen, stop_ids=self.stop_ids, prompts=texts, **where)
        found += content + self.baseline.tally()
        self.baseline = self.baseline.after(content)
        tally, rows = tally_text(self.content.tokens, ids, chosen, sample_offset=first_sample)
        return tally + found, rows

    def _duplicates(self, ids: Whole, chosen: Any, first_sample: int) -> Tally:
        if first_sample % self.group_size or ids.shape[0] % self.group_size:
            return Tally.absent((DUPLICATES,), CUT_GROUPS)
        return tally_duplicates(ids, chosen, self.group_size, sample_offset=first_sample)


def read_content(
    tokenizer: Any, rows: int | None, ranges: Mapping[str, Any] | None = None
) -> tuple[ContentTable | None, str]:
    """The tokenizer's table, or None and why it cannot be read; takes a good part of a second.

    ``ranges`` are the settings of `TokenRanges`; what they hold is told.
    """
    known = TokenRanges()
    with Guard("reading token_ranges"):
        known = TokenRanges.of(ranges or {})
    try:
        table = TokenTable.read(tokenizer, rows, known, cache=cache_folder())
    except VocabularyError as error:
        return None, f"not measured: {error}"
    if known.given():
        notices.once("token_ranges", f"your ranges of token ids hold {table.range_census()}")
    return ContentTable.of(table), ""


def plain_text(prompt: Any) -> str:
    """What a prompt says, without its roles and markup."""
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, dict):
        return plain_text(prompt.get("content", prompt.get("text", "")))
    return "\n".join(map(plain_text, prompt)) if isinstance(prompt, list) else ""


def shown_text(prompt: Any) -> str:
    """A prompt as a person reads it beside its completion: conversations with their roles."""
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, default=str)
