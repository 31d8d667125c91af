"""One generation → text, length and reward tallies, and the few completions worth keeping."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlvitals.guard import Guard
from rlvitals.integrations.samples import LONGEST, RESERVOIR, WORST_UTF8, Sample, Shelf
from rlvitals.integrations.texts import TextReader, read_content, shown_text
from rlvitals.integrations.token_details import token_detail
from rlvitals.integrations.token_scores import OF_TRL, scored
from rlvitals.integrations.trl import facts
from rlvitals.integrations.trl.rewards import RewardReader
from rlvitals.probes.arrays import Flags, Floats, Whole, flags
from rlvitals.probes.length_history import LengthHistory
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import TextRows, pack


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What `_calculate_rewards` saw on this rank: unpadded ids, never touched by a loss mask."""

    prompts: Sequence[Any]
    ids: Sequence[Sequence[int]]
    rewards: Any
    """(all ranks' completions, reward functions); None where the trainer does not show them"""
    first_sample: int
    """this rank's first row among all ranks'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a generation told: counted already, or still on the device; and the completions to keep."""

    tally: Tally
    on_device: tuple[Reduction, ...]
    samples: tuple[Sample, ...]
    shelf: Shelf | None = None
    totals: Floats | None = None


@dataclass(slots=True)
class Reader:
    """``tokenizer`` decodes the kept samples; ``blanks_cut`` where the trainer masks all of a cut completion."""

    text: TextReader
    rewards: RewardReader
    stop_ids: frozenset[int]
    cap: int | None
    tokenizer: Any
    blanks_cut: bool = False
    keep: bool = True
    history: LengthHistory = field(default_factory=LengthHistory)
    # our own dice: the global random states belong to the training
    dice: random.Random = field(default_factory=lambda: random.Random(20210823))

    def read(self, generation: Generation, shown: Mapping[str, Any], *, step: int, with_rewards: bool) -> Read:
        """``shown`` is TRL's own dict of the generation: advantages, and a tool mask (B, T) where tools wrote.

        Rewards are the same on every rank, so only one of them counts them.
        """
        ids, lengths = pack(generation.ids)
        first = generation.first_sample
        chosen = self._chosen(ids.shape, lengths, shown.get("tool_mask"))
        truncated = self._truncated(ids, lengths)
        tally, rows, totals, found = Tally.zero(), None, None, []
        with Guard("measuring lengths"):
            tally += self.history.add(self._lengths(ids, lengths, chosen, truncated, first))
        with Guard("reading completions"):
            written = lengths if chosen is None else chosen
            text, rows = self.text.read(ids, written, generation.prompts, first_sample=first, step=step)
            tally += text
        with Guard("reading rewards"):
            if generation.rewards is not None:
                totals = self.rewards.totals(generation.rewards)
                tally += self.rewards.read_rewards(generation.rewards, totals) if with_rewards else Tally.zero()
            if shown.get("advantages") is not None:
                found.append(self.rewards.read_advantages(shown["advantages"], totals, first))
        shelf = self._shelf(generation, rows, truncated, totals) if self.keep else None
        samples = () if shelf is None else self._samples(shelf, rows, lengths, first)
        with Guard("scoring the tokens of kept completions"):
            samples = tuple(scored(sample, sample.sample - first, shown, OF_TRL) for sample in samples)
        return Read(tally=tally, on_device=tuple(found), samples=samples, shelf=shelf, totals=totals)

    def _chosen(self, shape: tuple[int, ...], lengths: Whole, tool_mask: Any) -> Flags | None:
        """Which tokens the policy chose; None where it chose all of each completion."""
        if tool_mask is None:
            return None
        written = flags(tool_mask)[:, : shape[1]]
        if self.blanks_cut:
            # the trainer has blanked cut completions: who wrote what in them is lost, and most is the policy's
            written = written | ~written.any(axis=1, keepdims=True)
        return np.asarray((np.arange(shape[1]) < lengths[:, None]) & written)

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
        return tally_lengths(
            counted,
            last,
            self.stop_ids,
            self.cap,
            truncated=truncated,
            total_lengths=lengths,
            sample_offset=offset,
        )

    def _samples(self, shelf: Shelf, rows: TextRows | None, lengths: Whole, first: int) -> tuple[Sample, ...]:
        picked: dict[int, str] = {}
        for row in rows.worst(WORST_UTF8) if rows else ():
            picked.setdefault(row, "worst_utf8")
        for row in np.argsort(-lengths, kind="stable")[:LONGEST].tolist():
            picked.setdefault(row, "worst_length")
        for row in self.dice.sample(range(lengths.size), min(RESERVOIR, lengths.size)):
            picked.setdefault(row, "reservoir")
        found = (shelf(row + first, why) for row, why in picked.items())
        return tuple(sample for sample in found if sample is not None)

    def _shelf(
        self,
        generation: Generation,
        rows: TextRows | None,
        truncated: Flags | None,
        totals: Floats | None,
    ) -> Shelf:
        def take(number: int, why: str) -> Sample | None:
            row = number - generation.first_sample
            if not 0 <= row < len(generation.ids):
                return None
            return Sample(
                sample=number,
                completion=self.tokenizer.decode(generation.ids[row], skip_special_tokens=False),
                prompt=shown_text(generation.prompts[row]),
                token_ids=tuple(generation.ids[row]),
                reward=float(totals[number]) if totals is not None else None,
                truncated=bool(truncated[row]) if truncated is not None else False,
                invalid_utf8=int(rows.utf8.errors[row]) if rows else None,
                why=why,
                tokens=token_detail(self.text.table, generation.ids[row]),
            )

        return take


def unpadded(shown: Mapping[str, Any], inputs: Any, process_index: int) -> Generation | None:
    """Of a trainer that shows no rewards: ``shown`` is its batch, ``inputs`` the rows that it was made from."""
    ids, mask = shown.get("completion_ids"), shown.get("completion_mask")
    if ids is None or mask is None:
        return None
    lengths = mask.sum(1)
    # masked altogether because it was cut: it is as long as the batch is wide
    whole = lengths.where(lengths > 0, lengths.new_full((), ids.shape[1])).tolist()
    rows = [row[:length] for row, length in zip(ids.tolist(), whole, strict=True)]
    told = inputs if isinstance(inputs, (list, tuple)) and len(inputs) == len(rows) else [{}] * len(rows)
    prompts = [row.get("prompt", "") if isinstance(row, Mapping) else "" for row in told]
    return Generation(prompts=prompts, ids=rows, rewards=None, first_sample=process_index * len(rows))


def reader_for(
    trainer: Any,
    *,
    keep: bool,
    reward_range: tuple[float, float] | None = None,
    token_ranges: Mapping[str, Any] | None = None,
) -> Reader:
    """``reward_range`` are the least and the greatest reward; else what the run shows stands for them."""
    known = RewardRange()
    with Guard("the reward range"):
        known = RewardRange.of(*reward_range) if reward_range is not None else known
    group_size = getattr(trainer, "num_generations", 1)
    names = getattr(trainer, "reward_func_names", ())
    return Reader(
        text=_text_reader(trainer, token_ranges),
        rewards=RewardReader(
            names=names,
            weights=getattr(trainer, "reward_weights", None),
            group_size=group_size,
            range=known,
        ),
        stop_ids=facts.stop_ids(trainer),
        cap=getattr(trainer, "max_completion_length", None),
        tokenizer=facts.tokenizer_of(trainer),
        blanks_cut=bool(getattr(trainer, "mask_truncated_completions", False)),
        keep=keep,
    )


def _text_reader(trainer: Any, ranges: Mapping[str, Any] | None) -> TextReader:
    """Reads the tokenizer, which takes a good part of a second: once, when training begins."""
    content, reason = read_content(facts.tokenizer_of(trainer), facts.embedding_rows(trainer), ranges)
    return TextReader(
        content=content,
        stop_ids=facts.stop_ids(trainer),
        group_size=getattr(trainer, "num_generations", 1),
        ranks=trainer.accelerator.num_processes,
        no_table=reason,
    )
