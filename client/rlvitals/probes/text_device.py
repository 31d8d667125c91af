"""The text probe where the ids are: dense, without data-dependent shapes, so that nothing waits for a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from rlvitals.probes.arguments import check_chosen, check_ids, check_same_device, check_tokens
from rlvitals.probes.arrays import Floats
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.nested import dense
from rlvitals.probes.reduction import IdTable, Reduction
from rlvitals.probes.scan import RESET_MAP, RowCounts
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import DECODED_METRIC, IdCounts, tally_found
from rlvitals.probes.tokens import TokenClass, TokenTable
from rlvitals.probes.uncompiled import uncompiled
from rlvitals.probes.utf8 import STRIDE

NOT_ON_A_DEVICE = "not measured: what a decoder prints is counted where the ids are on the host"


class DeviceText:
    """A `TokenTable` on a device. Make it once per device and run, not once per step."""

    def __init__(self, table: TokenTable, device: torch.device | str) -> None:
        self._table = table
        self._map_of = torch.as_tensor(table.map_of.astype(np.int64), device=device)
        self._classes = torch.as_tensor(table.classes.astype(np.int64), device=device)
        self._never = torch.as_tensor(table.never_trained(), device=device)
        self._bytes = torch.as_tensor(table.byte_pieces().astype(np.float64), device=device)
        self._after = torch.as_tensor(table.maps.after.astype(np.int64), device=device)
        self._errors = torch.as_tensor(table.maps.errors.astype(np.int64), device=device)
        self._literals = torch.as_tensor(table.maps.literals.astype(np.int64), device=device)

    @uncompiled
    def measure(self, ids: Tensor, chosen: Tensor, *, sample_offset: int = 0) -> Reduction:
        """Launches the counts of ``ids`` (B, T) and returns at once; arguments as in `text.tally_text`.

        Raises ShapeError, DeviceError or DtypeError naming the argument.
        """
        ids, chosen = dense(ids=ids, chosen=chosen)
        check_tokens(ids=ids)
        check_ids("ids", ids)
        check_chosen("chosen", chosen, ids.shape)
        check_same_device(table=self._classes, ids=ids, chosen=chosen)
        ids = ids.long()
        mask, slots = mask_of(chosen, ids), slots_of(ids, self._table.rows)
        counted = IdTable(slots, self._table.rows + 1)
        counted.add(slots, mask.double())
        classes = torch.zeros(len(TokenClass), dtype=torch.float64, device=ids.device)
        classes.scatter_add_(0, self._classes[: counted.sums.numel()], counted.sums)
        byte_pieces = (counted.sums * self._bytes[: counted.sums.numel()]).sum()
        codes = torch.where(mask, self._map_of[slots], RESET_MAP)
        rows = torch.cat([self._scan(codes, ids), self._never_trained(slots, mask, ids)])
        return Reduction(
            parts=(
                classes,
                torch.stack([counted.sums[0], byte_pieces]),
                rows.double().reshape(-1),
                counted.part(),
            ),
            build=partial(_build, self._table, counted.build, sample_offset),
        )

    def _scan(self, codes: Tensor, ids: Tensor) -> Tensor:
        """(5, B): errors, tails, literals, position of the first error (-1: none) and its id."""
        width = codes.shape[1]
        padded = torch.nn.functional.pad(codes, (3, 1), value=RESET_MAP)
        state = self._after[padded[:, : width + 1] * STRIDE]
        state = self._after[padded[:, 1 : width + 2] * STRIDE + state]
        state = self._after[padded[:, 2 : width + 3] * STRIDE + state]
        here = padded[:, 3:]
        step = here * STRIDE + state
        errors = self._errors[step]
        tails = ((here == RESET_MAP) & (state != 0)).sum(1)
        return torch.stack(
            [errors.sum(1), tails, self._literals[step].sum(1), *first_found(errors[:, :width] > 0, ids)]
        )

    def _never_trained(self, slots: Tensor, mask: Tensor, ids: Tensor) -> Tensor:
        """(3, B): how many ids no training touched, position of the first (-1: none) and the id itself."""
        bad = self._never[slots] & mask
        return torch.stack([bad.sum(1), *first_found(bad, ids)])


def mask_of(chosen: Tensor, ids: Tensor) -> Tensor:
    """(B, T) which ids the policy chose, from lengths (B,) or a mask (B, T) of any dtype."""
    if chosen.dim() != 1:
        return chosen != 0
    return torch.arange(ids.shape[1], device=ids.device) < chosen.unsqueeze(1)


def slots_of(ids: Tensor, rows: int) -> Tensor:
    """``ids`` as indexes of a table of ``rows + 1`` entries, the last of them for ids out of range."""
    return torch.where((ids < 0) | (ids > rows), rows, ids)


def first_found(found: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Position of the first True in each row, -1 where there is none, and the id there."""
    if not ids.shape[1]:
        nothing = torch.full((ids.shape[0],), -1, device=ids.device)
        return nothing, nothing
    position = found.to(torch.uint8).argmax(1)
    token_id = ids.gather(1, position.unsqueeze(1)).squeeze(1)
    return torch.where(found.any(1), position, -1), token_id


def _build(
    table: TokenTable, read_ids: Callable[[Floats], IdSums], sample_offset: int, parts: Sequence[Floats]
) -> Tally:
    classes, (id0, byte_pieces), flat, top = parts
    rows = flat.reshape(8, -1).astype(np.int64)
    errors, tails, literals, error_position, error_id, never, never_position, never_id = rows
    wrong, bad = np.flatnonzero(errors), np.flatnonzero(never)
    utf8 = RowCounts(
        errors=errors, tails=tails, literals=literals, error_rows=wrong, error_positions=error_position[wrong]
    )
    found = tally_found(
        table,
        utf8,
        seen=IdCounts(
            classes=classes.astype(np.int64), never_trained=int(never.sum()), byte_pieces=int(byte_pieces)
        ),
        ids_seen=read_ids(top),
        id0=int(id0),
        error_ids=error_id[wrong],
        first_never=(int(bad[0]), int(never_position[bad[0]]), int(never_id[bad[0]])) if bad.size else None,
        sample_offset=sample_offset,
    )
    return found + Tally.absent((DECODED_METRIC,), NOT_ON_A_DEVICE)
