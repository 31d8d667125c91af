"""One generation → text, length and reward tallies, and the few completions worth keeping."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlvitals.integrations.trl import facts
from rlvitals.probes.arrays import Flags, Floats, Whole, flags
from rlvitals.probes.groups import tally_rewards, total_rewards
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import TextRows, pack, tally_text
from rlvitals.probes.tokens import TokenTable

RESERVOIR, WORST_UTF8, LONGEST = 2, 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What `_calculate_rewards` saw on this rank: unpadded ids, never touched by a loss mask."""

    prompts: Sequence[Any]
    ids: Sequence[Sequence[int]]
    rewards: Any
    """(all ranks' completions, reward functions)"""
    first_sample: int
    """this rank's first row among all ranks'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One completion to keep, as arguments of `Reporter.text`."""

    sample: int
    completion: str
    prompt: str
    token_ids: tuple[int, ...]
    reward: float | None
    truncated: bool
    invalid_utf8: int | None
    why: str


@dataclass(slots=True)
class Reader:
    """``tokenizer`` decodes the kept samples; ``table`` is None where the tokenizer cannot be read."""

    stop_ids: frozenset[int]
    cap: int | None
    group_size: int
    weights: Any
    tokenizer: Any
    table: TokenTable | None
    no_table: str = ""
    keep: bool = True
    # our own dice: the global random states belong to the training
    dice: random.Random = field(default_factory=lambda: random.Random(20210823))

    def read(
        self, generation: Generation, tool_mask: Any, *, with_rewards: bool
    ) -> tuple[Tally, tuple[Sample, ...]]:
        """``tool_mask`` (B, T) is 0 on tokens that a tool wrote, None without tools.

        Rewards are the same on every rank, so only one of them counts them.
        """
        ids, lengths = pack(generation.ids)
        chosen = _chosen(ids.shape, lengths, tool_mask)
        truncated = self._truncated(ids, lengths)
        tally = self._lengths(ids, lengths, chosen, truncated, generation.first_sample)
        text, rows = self._text(ids, lengths if chosen is None else chosen, generation.first_sample)
        totals = total_rewards(generation.rewards, self.weights)
        if with_rewards:
            tally += tally_rewards(totals, self.group_size)
        samples = self._samples(generation, rows, lengths, truncated, totals) if self.keep else ()
        return tally + text, samples

    def _truncated(self, ids: Whole, lengths: Whole) -> Flags | None:
        if self.cap is None or not ids.size:
            return None
        last = ids[np.arange(lengths.size), np.maximum(lengths - 1, 0)]
        cut: Flags = ~np.isin(last, list(self.stop_ids)) & (lengths >= self.cap)
        return cut

    def _lengths(
        self, ids: Whole, lengths: Whole, chosen: Flags | None, truncated: Flags | None, offset: int
    ) -> Tally:
        last = ids[np.arange(lengths.size), np.maximum(lengths - 1, 0)] if ids.size else lengths
        counted = lengths if chosen is None else chosen.sum(axis=1)
        return tally_lengths(counted, last, self.stop_ids, self.cap, truncated=truncated, sample_offset=offset)

    def _text(self, ids: Whole, chosen: Any, offset: int) -> tuple[Tally, TextRows | None]:
        if self.table is None:
            return Tally.absent(TEXT_METRICS, self.no_table), None
        return tally_text(self.table, ids, chosen, sample_offset=offset)

    def _samples(
        self,
        generation: Generation,
        rows: TextRows | None,
        lengths: Whole,
        truncated: Flags | None,
        totals: Floats,
    ) -> tuple[Sample, ...]:
        picked: dict[int, str] = {}
        for row in rows.worst(WORST_UTF8) if rows else ():
            picked.setdefault(row, "worst_utf8")
        for row in np.argsort(-lengths, kind="stable")[:LONGEST].tolist():
            picked.setdefault(row, "worst_length")
        for row in self.dice.sample(range(lengths.size), min(RESERVOIR, lengths.size)):
            picked.setdefault(row, "reservoir")
        return tuple(
            Sample(
                sample=row + generation.first_sample,
                completion=self.tokenizer.decode(generation.ids[row], skip_special_tokens=False),
                prompt=_prompt_text(generation.prompts[row]),
                token_ids=tuple(generation.ids[row]),
                reward=float(totals[row + generation.first_sample]),
                truncated=bool(truncated[row]) if truncated is not None else False,
                invalid_utf8=int(rows.utf8.errors[row]) if rows else None,
                why=why,
            )
            for row, why in picked.items()
        )


TEXT_METRICS = (
    "text.invalid_utf8_count",
    "text.invalid_utf8_per_1k",
    "text.invalid_utf8_completions",
    "text.replacement_char_count",
    "text.literal_replacement_per_1k",
    "text.cut_char_completions",
    "text.never_trained_rate",
    "text.out_of_range_count",
    "text.byte_piece_ratio",
    "text.byte_fallback_ratio",
    "text.top_id_share",
    "text.id0_share",
)


def reader_for(trainer: Any, *, keep: bool) -> Reader:
    """Reads the tokenizer into a table, which takes a good part of a second: once, when training begins."""
    tokenizer = facts.tokenizer_of(trainer)
    table, reason = None, ""
    try:
        table = TokenTable.from_tokenizer(tokenizer, facts.embedding_rows(trainer))
    except TypeError as error:
        reason = f"not measured: {error}"
    return Reader(
        stop_ids=facts.stop_ids(trainer),
        cap=getattr(trainer, "max_completion_length", None),
        group_size=getattr(trainer, "num_generations", 1),
        weights=getattr(trainer, "reward_weights", None),
        tokenizer=tokenizer,
        table=table,
        no_table=reason,
        keep=keep,
    )


def _chosen(shape: tuple[int, ...], lengths: Whole, tool_mask: Any) -> Flags | None:
    """Which tokens the policy chose; None where it chose all of each completion."""
    if tool_mask is None:
        return None
    written = flags(tool_mask)[:, : shape[1]]
    return np.asarray((np.arange(shape[1]) < lengths[:, None]) & written)


def _prompt_text(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, default=str)
