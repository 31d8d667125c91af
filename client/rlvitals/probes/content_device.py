"""What completions hold and repeat, counted where the ids are; those that are read in full come with the counts.

Every completion is looked at on the device without data-dependent shapes. The ids of the few that are read in full
travel in the same copy as the counts, and their text is put together on the host.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import (
    ShapeError,
    check_at_least,
    check_chosen,
    check_ids,
    check_same_device,
    check_tokens,
)
from rlvitals.probes.arrays import Floats, Whole
from rlvitals.probes.content import CONTROL, SPECIAL, ContentTable, RowMarks, tally_marked, tally_spelt
from rlvitals.probes.duplicates import METRIC, NO_GROUPS, tally_keys
from rlvitals.probes.mixing import STRIDE, WORD
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.repetition import tally_loops, tally_run
from rlvitals.probes.row_sample import ReadRows, RowSample
from rlvitals.probes.tally import Tally
from rlvitals.probes.text_device import first_found, mask_of, slots_of
from rlvitals.probes.uncompiled import uncompiled


class DeviceContent:
    """A `ContentTable` on a device. Make it once per device and run, not once per step."""

    def __init__(
        self,
        table: ContentTable,
        device: torch.device | str,
        *,
        stop_ids: Collection[int] = (),
        allowed_ids: Collection[int] = (),
    ) -> None:
        self._table = table
        self._kinds = torch.as_tensor(table.watched({*stop_ids, *allowed_ids}), device=device)
        self._controls = torch.as_tensor(table.controls.astype(np.int64), device=device)

    @uncompiled
    def measure(
        self,
        ids: Tensor,
        chosen: Tensor,
        *,
        sample: RowSample,
        group_size: int = 1,
        prompts: Sequence[str] | None = None,
        sample_offset: int = 0,
    ) -> Reduction:
        """Launches the counts and returns at once. They are those of `content.tally_content`,
        `repetition.tally_repetition` and `duplicates.tally_duplicates` together; arguments as there.

        Raises ShapeError, DeviceError, DtypeError or ProbeArgumentError naming the argument.
        """
        ids, chosen = dense(ids=ids, chosen=chosen)
        check_tokens(ids=ids)
        check_ids("ids", ids)
        check_chosen("chosen", chosen, ids.shape)
        check_same_device(table=self._kinds, ids=ids, chosen=chosen)
        check_at_least("group_size", group_size, 1)
        if prompts is not None and len(prompts) != ids.shape[0]:
            raise ShapeError("prompts", f"one text for each of {ids.shape[0]} completions", str(len(prompts)))
        ids = ids.long()
        mask, slots = mask_of(chosen, ids), slots_of(ids, self._table.tokens.rows)
        kinds = self._kinds[slots] * mask
        special, control = (kinds == SPECIAL) & _before_last(mask), kinds == CONTROL
        marks = [torch.stack([found.sum(1), *first_found(found, ids)]) for found in (special, control)]
        totals = torch.stack([mask.sum(), (self._controls[slots] * control).sum()])
        rows = sample.rows(ids.shape[0], sample_offset)
        build = _Build(
            table=self._table,
            rows=rows,
            width=ids.shape[1],
            group_size=group_size,
            prompts=prompts,
            sample_offset=sample_offset,
        )
        every = torch.cat([*marks, _runs(ids, mask), _hashes(ids, mask)])
        return Reduction(parts=(totals.double(), every.double().reshape(-1), _read(ids, mask, rows)), build=build)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Build:
    table: ContentTable
    rows: Whole
    width: int
    group_size: int
    prompts: Sequence[str] | None
    sample_offset: int

    def __call__(self, parts: Sequence[Floats]) -> Tally:
        totals, every, flat = parts
        tokens, controls = (int(total) for total in totals)
        per_row = every.reshape(11, -1).astype(np.int64)
        ids = flat.reshape(self.rows.size, self.width)
        chosen = ~np.isnan(ids)
        read = ReadRows(
            ids=np.where(chosen, ids, 0).astype(np.int64),
            mask=chosen,
            rows=self.rows,
            samples=self.rows + self.sample_offset,
        )
        spelt = self.table.spelling.spell(read)
        special, control = (
            RowMarks(counts=per_row[at], positions=per_row[at + 1], ids=per_row[at + 2]) for at in (0, 3)
        )
        return (
            tally_marked(special, control, controls, tokens, self.sample_offset, reason=spelt.reason)
            + tally_spelt(self.table, spelt, self.prompts)
            + tally_loops(read, spelt)
            + tally_run(_longest(per_row[6:9], self.sample_offset), tokens)
            + self._duplicates(per_row[9:])
        )

    def _duplicates(self, halves: Whole) -> Tally:
        if self.group_size == 1:
            return Tally.absent((METRIC,), NO_GROUPS)
        return tally_keys(map(tuple, halves.T.tolist()), self.group_size, self.sample_offset)


def _longest(runs: Whole, offset: int) -> Extreme | None:
    if not runs.size or not runs[0].any():
        return None
    row = int(runs[0].argmax())
    length, position, token_id = runs[:, row].tolist()
    return Extreme(value=float(length), token_id=token_id, position=position, sample=row + offset)


def _before_last(mask: Tensor) -> Tensor:
    """Where a later token of the same row was chosen."""
    later = mask.flip(1).cumsum(1).flip(1) - mask.long()
    return later > 0


def _runs(ids: Tensor, mask: Tensor) -> Tensor:
    """(3, B): the longest run of one id (0 where no token was chosen), where it starts, and the id."""
    if not ids.shape[1]:
        return torch.zeros((3, ids.shape[0]), dtype=torch.long, device=ids.device)
    same = (ids[:, 1:] == ids[:, :-1]) & mask[:, 1:] & mask[:, :-1]
    place = torch.arange(ids.shape[1], device=ids.device)
    start = (place * ~torch.nn.functional.pad(same, (1, 0))).cummax(1).values
    length, end = ((place - start + 1) * mask).max(1)
    start = start.gather(1, end.unsqueeze(1))
    return torch.stack([length, start.squeeze(1), ids.gather(1, start).squeeze(1)])


def _hashes(ids: Tensor, mask: Tensor) -> Tensor:
    """(2, B): halves of a 64-bit hash of each row's chosen ids in their order, which padding does not change."""
    words = (_mixed(_mixed(ids) + mask.cumsum(1) * _signed(STRIDE)) * mask).sum(1)
    return torch.stack([words >> 32, words & 0xFFFFFFFF])


def _mixed(words: Tensor) -> Tensor:
    """`mixing.mixed` on signed words, whose products wrap around in the same way."""
    words = (words ^ _shifted(words, 30)) * _signed(0xBF58476D1CE4E5B9)
    words = (words ^ _shifted(words, 27)) * _signed(0x94D049BB133111EB)
    return words ^ _shifted(words, 31)


def _shifted(words: Tensor, by: int) -> Tensor:
    return (words >> by) & ((1 << (64 - by)) - 1)


def _signed(word: int) -> int:
    return word - WORD if word >= WORD >> 1 else word


def _read(ids: Tensor, mask: Tensor, rows: Whole) -> Tensor:
    """The ids of ``rows`` as doubles, NaN where the policy did not choose them."""
    if not rows.size:
        return torch.zeros(0, dtype=torch.float64, device=ids.device)
    # sliced one by one: an index of all would have to be sent to the device
    kept = [ids[row].double().masked_fill(~mask[row], torch.nan) for row in rows.tolist()]
    return torch.stack(kept).reshape(-1)
