"""What a loop says of its completions → text, length and reward tallies, and the few completions worth keeping."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlvitals.contract.metrics import METRICS, Family
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.loop.facts import GROUPED, NO_GROUPING, Facts
from rlvitals.integrations.loop.measure import tensor
from rlvitals.integrations.samples import LONGEST, RESERVOIR, WORST_UTF8, Sample, Shelf
from rlvitals.integrations.texts import TextReader, read_content, shown_text
from rlvitals.integrations.token_details import token_detail
from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.arrays import Flags, Floats, Whole, flags, floats, is_tensor, whole
from rlvitals.probes.components import tally_components
from rlvitals.probes.groups import NONFINITE, in_equal_group, tally_rewards, total_rewards
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.reward_range import RewardRange
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import TextRows, pack

NO_TOKENIZER = "rlvitals.run was given no tokenizer"
NO_REWARDS = "vitals.rollout was given no rewards"
NO_ADVANTAGES = "vitals.rollout was given no advantages"
ONE_REWARD = "one reward is told, not those of several functions"
CUT = "length.truncated"
OF_REWARDS = (*(m.name for m in METRICS if m.family is Family.REWARD and "advantage" not in m.name), NONFINITE)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rollout:
    """Completions ``ids`` (B, T), of which ``lengths`` (B,) tokens count against the limit; ``written`` (B, T) are
    those that the policy chose, None where it chose all of them. Row 0 is number ``first_sample`` of the step.
    """

    ids: Whole
    lengths: Whole
    written: Flags | None
    first_sample: int

    @classmethod
    def of(cls, ids: Any, chosen: Any, stop_ids: frozenset[int], first_sample: int) -> Rollout:
        """Raises `ProbeArgumentError` naming what is of the wrong shape or kind."""
        numbers, lengths = _padded(ids)
        if numbers.ndim != 2:
            raise ShapeError("ids", "(B, T)", str(numbers.shape))
        written = None
        if chosen is not None and np.ndim(chosen) == 2:
            written = flags(chosen)
            if written.shape != numbers.shape:
                raise ShapeError("chosen", str(numbers.shape), str(written.shape))
            lengths = _last(written) + 1
            written = None if (written.sum(axis=1) == lengths).all() else written
        elif chosen is not None:
            lengths = np.clip(whole(chosen, "chosen").ravel(), 0, numbers.shape[1])
        if lengths is None:
            lengths = _ends(numbers, stop_ids)
        if lengths.shape != numbers.shape[:1]:
            raise ShapeError("chosen", f"({numbers.shape[0]},)", str(lengths.shape))
        return cls(ids=numbers, lengths=lengths, written=written, first_sample=first_sample)

    @property
    def size(self) -> int:
        return int(self.ids.shape[0])

    @property
    def chosen(self) -> Whole | Flags:
        return self.lengths if self.written is None else self.written

    @property
    def counted(self) -> Whole:
        """(B,) tokens that the policy chose."""
        return self.lengths if self.written is None else np.asarray(self.written.sum(axis=1))

    @property
    def last_ids(self) -> Whole:
        """(B,) the last token of each, anything where there is none."""
        if not self.ids.size:
            return self.lengths
        last: Whole = self.ids[np.arange(self.size), np.maximum(self.lengths - 1, 0)]
        return last


def _padded(ids: Any) -> tuple[Whole, Whole | None]:
    """(B, T) ids; with their lengths where they came without padding."""
    if is_tensor(ids) or isinstance(ids, np.ndarray):
        return whole(ids), None
    return pack([row.tolist() if hasattr(row, "tolist") else row for row in ids])


def _last(mask: Flags) -> Whole:
    """(B,) the place of each row's last True, -1 where there is none."""
    places = np.where(mask, np.arange(mask.shape[1]), -1)
    last: Whole = places.max(axis=1, initial=-1)
    return last


def _ends(ids: Whole, stop_ids: frozenset[int]) -> Whole:
    """(B,) lengths up to the first stop id, that included; the whole row where there is none."""
    stops = np.isin(ids, list(stop_ids))
    if not ids.size:
        return np.zeros(ids.shape[0], np.int64)
    ends: Whole = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, ids.shape[1])
    return ends


@dataclass(slots=True)
class RolloutReader:
    """One loop's, on one of ``ranks`` ranks. ``keep`` says whether completions are shown at all."""

    facts: Facts
    text: TextReader
    range: RewardRange
    keep: bool
    # our own dice: the global random states belong to the training
    dice: random.Random = field(default_factory=lambda: random.Random(20210823))

    @classmethod
    def of(cls, facts: Facts, *, ranks: int, keep: bool) -> RolloutReader:
        """Reads the tokenizer into a table, which takes a good part of a second: once."""
        content, reason = None, NO_TOKENIZER
        with Guard("reading the tokenizer"):
            if facts.tokenizer is not None:
                content, reason = read_content(facts.tokenizer, facts.rows(), facts.token_ranges)
        known = RewardRange()
        with Guard("the reward range"):
            known = RewardRange.of(*facts.reward_range) if facts.reward_range is not None else known
        text = TextReader(
            content=content,
            stop_ids=facts.stop_ids,
            group_size=facts.group_size or 1,
            ranks=ranks,
            no_table=reason,
        )
        return cls(facts=facts, text=text, range=known, keep=keep)

    def lengths(self, told: Rollout, finish_reasons: Sequence[Any] | None) -> Tally:
        return self._ended(told, slice(None), finish_reasons)

    def _ended(self, told: Rollout, rows: slice, finish_reasons: Sequence[Any] | None) -> Tally:
        return tally_lengths(
            told.counted[rows],
            told.last_ids[rows],
            self.facts.stop_ids,
            self.facts.length_cap,
            finish_reasons=None if finish_reasons is None else finish_reasons[rows],
            total_lengths=told.lengths[rows],
            sample_offset=told.first_sample,
        )

    def texts(
        self, told: Rollout, prompts: Sequence[Any] | None, group_ids: Any, step: int
    ) -> tuple[Tally, TextRows | None]:
        size = self.facts.group_size if group_ids is None else even_groups(group_ids)
        self.text.group_size = size or 1
        tally, rows = self.text.read(told.ids, told.chosen, prompts, first_sample=told.first_sample, step=step)
        if size is None:
            reason = NO_GROUPING if group_ids is None else "not measured: the groups are no neighbours of one size"
            tally = replace(tally, missing={**tally.missing, "text.duplicate_rate": reason})
        return tally, rows

    def rewards(self, told: Rollout, rewards: Any, group_ids: Any) -> tuple[Tally, Floats | None]:
        """The tally, and the totals (B,)."""
        if rewards is None:
            return Tally.absent(OF_REWARDS, NO_REWARDS), None
        names, columns = _by_function(rewards, self.facts.reward_names)
        if columns.shape[0] != told.size:
            raise ShapeError("rewards", f"({told.size},)", str(columns.shape))
        weights = self.facts.reward_weights if columns.shape[1] > 1 else None
        totals = total_rewards(columns, weights)
        self.range = self.range.including(totals)
        where: dict[str, Any] = {"reward_range": self.range, "sample_offset": told.first_sample}
        tally = tally_rewards(totals, self._group_size(group_ids), group_ids=group_ids, **where)
        if columns.shape[1] == 1 and not names:
            return tally + Tally.absent(("reward.components_constant",), ONE_REWARD), totals
        return tally + tally_components(columns, names, weights), totals

    def advantages(self, told: Rollout, advantages: Any, totals: Floats | None, group_ids: Any) -> Reduction:
        values, equal = tensor(advantages), None
        if totals is not None:
            equal = tensor(in_equal_group(totals, self._group_size(group_ids), group_ids=group_ids))
        mask = _mask(told, values)
        return measure_advantages(values, equal=equal, mask=mask, sample_offset=told.first_sample)

    def _group_size(self, group_ids: Any) -> int | None:
        return None if group_ids is not None else self.facts.group_size or 1

    def samples(
        self,
        told: Rollout,
        rows: TextRows | None,
        totals: Floats | None,
        finish_reasons: Sequence[Any] | None,
        prompts: Sequence[Any] | None,
        texts: Sequence[str] | None,
    ) -> list[Sample]:
        """The worst, the longest and a few others."""
        shelf = self.shelf(told, rows, totals, finish_reasons, prompts, texts)
        if shelf is None:
            return []
        picked: dict[int, str] = {}
        for row in rows.worst(WORST_UTF8) if rows else ():
            picked.setdefault(row, "worst_utf8")
        for row in np.argsort(-told.lengths, kind="stable")[:LONGEST].tolist():
            picked.setdefault(row, "worst_length")
        for row in self.dice.sample(range(told.size), min(RESERVOIR, told.size)):
            picked.setdefault(row, "reservoir")
        found = (shelf(row + told.first_sample, why) for row, why in picked.items())
        return [sample for sample in found if sample is not None]

    def shelf(
        self,
        told: Rollout,
        rows: TextRows | None,
        totals: Floats | None,
        finish_reasons: Sequence[Any] | None,
        prompts: Sequence[Any] | None,
        texts: Sequence[str] | None,
    ) -> Shelf | None:
        """Any completion of the rollout; None where none may leave the process."""

        def take(number: int, why: str) -> Sample | None:
            row = number - told.first_sample
            if not 0 <= row < told.size:
                return None
            ids = told.ids[row, : told.lengths[row]].tolist()
            return Sample(
                sample=number,
                completion=texts[row] if texts is not None else self._decoded(ids),
                prompt=shown_text(prompts[row]) if prompts is not None else "",
                token_ids=tuple(ids),
                reward=float(totals[row]) if totals is not None else None,
                truncated=bool(self._ended(told, slice(row, row + 1), finish_reasons).counts.get(CUT, 0)),
                invalid_utf8=int(rows.utf8.errors[row]) if rows else None,
                why=why,
                tokens=token_detail(self.text.table, ids),
            )

        return take if self.keep else None

    def _decoded(self, ids: list[int]) -> str:
        decode = getattr(self.facts.tokenizer, "decode", None)
        return str(attempt(decode, ids) or "") if decode is not None else ""


def _mask(told: Rollout, values: Any) -> Any:
    """Advantages of each token count where the policy chose the token; None for those of whole completions."""
    if values.dim() != 2 or tuple(values.shape) != told.ids.shape:
        return None
    written = told.written
    if written is None:
        written = np.arange(told.ids.shape[1]) < told.lengths[:, None]
    return tensor(written).to(values.device)


def grouped(names: Mapping[str, str]) -> dict[str, str]:
    """``names`` without those that groups allow, once somebody has told of groups."""
    return {name: reason for name, reason in names.items() if name not in GROUPED}


def even_groups(group_ids: Any) -> int | None:
    """The size of groups that are neighbours and all of one size; None for others."""
    ids = whole(group_ids) if is_tensor(group_ids) else np.asarray(group_ids)
    distinct = np.unique(ids).size
    if not distinct or ids.size % distinct:
        return None
    size = ids.size // distinct
    return size if (ids.reshape(distinct, size) == ids.reshape(distinct, size)[:, :1]).all() else None


def _by_function(rewards: Any, names: Sequence[str]) -> tuple[list[str], Floats]:
    """The names of reward functions and their rewards (B, F)."""
    if isinstance(rewards, Mapping):
        return list(rewards), np.stack([floats(value).ravel() for value in rewards.values()], axis=1)
    columns = floats(rewards)
    if columns.ndim == 1:
        columns = columns[:, None]
    named = list(names) if len(names) == columns.shape[1] else []
    if columns.shape[1] > 1 and not named:
        named = [f"function_{number}" for number in range(columns.shape[1])]
    return named, columns
