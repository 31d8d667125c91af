"""Sums taken where the tensors are: one transfer to the host, and only when somebody asks.

A probe's ``measure_…`` form launches work on the tensors' device and returns a `Reduction`; nothing waits for a
GPU until ``tally()``. `Pending` sends many of them in one asynchronous copy to pinned memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.probes.arrays import Floats
from rlvitals.probes.id_sums import IdSums
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

# elements worked on at once: few enough for the intermediate doubles to stay in a core's cache
CHUNK = 1 << 16
CHUNK_ON_DEVICE, BLOCKS_ON_DEVICE = 1 << 15, 40
TOP_IDS_ON_DEVICE = 1024
VOCABULARY_ON_DEVICE = 1 << 19
VOCABULARY_LIMIT = 1 << 22


@dataclass(frozen=True, slots=True)
class Reduction:
    """``parts`` are flat tensors, on any device; ``build`` makes the Tally from their copies in doubles."""

    parts: tuple[Tensor, ...]
    build: Callable[[Sequence[Floats]], Tally]

    @uncompiled
    def tally(self) -> Tally:
        """The Tally; on a GPU this waits for the work and its one copy."""
        return Pending([self]).tally()


class Pending:
    """Reductions of one step on their way to the host. ``ready`` never waits; ``tally`` does.

    All that lies on one device goes in one copy.
    """

    @uncompiled
    def __init__(self, reductions: Sequence[Reduction]) -> None:
        self._reductions = tuple(reductions)
        parts: dict[torch.device, list[Tensor]] = {}
        for reduction in self._reductions:
            for part in reduction.parts:
                parts.setdefault(part.device, []).append(part.detach().reshape(-1).double())
        self._copies = {device: _Copy(torch.cat(together)) for device, together in parts.items()}

    def ready(self) -> bool:
        return all(copy.ready() for copy in self._copies.values())

    @uncompiled
    def tally(self) -> Tally:
        """The sum of all reductions."""
        hosts = {device: copy.host() for device, copy in self._copies.items()}
        return sum(self._built(hosts), Tally.zero())

    def _built(self, hosts: Mapping[torch.device, Floats]) -> list[Tally]:
        tallies, starts = [], dict.fromkeys(hosts, 0)
        for reduction in self._reductions:
            parts = []
            for part in reduction.parts:
                start = starts[part.device]
                starts[part.device] = end = start + part.numel()
                parts.append(hosts[part.device][start:end])
            tallies.append(reduction.build(parts))
        return tallies


class _Copy:
    """One device's numbers, copied to pinned memory while that device goes on working."""

    def __init__(self, numbers: Tensor) -> None:
        self._numbers = numbers
        self._event: Any = None
        if numbers.is_cuda:
            self._numbers = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            # not the current device's stream: the numbers may lie on another one
            self._event.record(torch.cuda.current_stream(numbers.device))

    def ready(self) -> bool:
        return self._event is None or bool(self._event.query())

    def host(self) -> Floats:
        if self._event is not None:
            self._event.synchronize()
        numbers: Floats = self._numbers.cpu().numpy()
        return numbers


def on_host(tensor: Tensor) -> bool:
    """Where looking at a number costs nothing, needless work is skipped; on a GPU all of it is launched."""
    return tensor.device.type == "cpu"


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor there; no GPU is waited for, unless it is a CPU that would read what has not arrived yet."""
    return tensor.detach().to(device, non_blocking=device.type != "cpu")


def row_blocks(tensor: Tensor) -> list[slice]:
    """How to cut the rows of (B, T): into cache-sized blocks, and on a GPU into few of them.

    A block's intermediate doubles are what a probe needs beside its inputs, so halves are cut twice as often; each
    block is launched apart.
    """
    rows, width = tensor.shape
    if not width:
        return []
    halves = 2 if tensor.element_size() < 4 else 1
    if on_host(tensor):
        step = max(1, CHUNK // halves // width)
    else:
        step = max(1, CHUNK_ON_DEVICE // halves // width, -(-rows // (BLOCKS_ON_DEVICE * halves)))
    return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]


def tokens_by_row(mask: Tensor) -> Tensor:
    """(B,) how many tokens of each row are under the mask."""
    counts = [mask[block].count_nonzero(1) for block in row_blocks(mask)]
    return torch.cat(counts) if counts else torch.zeros(mask.shape[0], dtype=torch.int64, device=mask.device)


def per_token(value: Tensor) -> Tensor:
    """One number → (1, 1) and (B,) → (B, 1), so that they broadcast over tokens; other shapes as they are."""
    return value.reshape(-1, 1) if value.dim() < 2 else value


class IdTable:
    """Adds up a quantity per token id on the ids' own device, without waiting for it.

    On a CPU the table is exact; on a GPU it names the ``TOP_IDS_ON_DEVICE`` largest ids (see `IdSums`). Ids beyond
    the table count for its ends.
    """

    def __init__(self, ids: Tensor, vocabulary: int | None) -> None:
        self._on_host = on_host(ids)
        if self._on_host and vocabulary is None:
            vocabulary = int(ids.max()) + 1 if ids.numel() else 1
        size = max(1, min(vocabulary or VOCABULARY_ON_DEVICE, VOCABULARY_LIMIT))
        self.sums = torch.zeros(size, dtype=torch.float64, device=ids.device)

    def add(self, ids: Tensor, amounts: Tensor) -> None:
        least, most = span(ids)
        if least < 0 or most >= self.sums.numel():
            ids = ids.clamp(0, self.sums.numel() - 1)
        self.sums.scatter_add_(0, ids.reshape(-1).long(), amounts.reshape(-1))

    def part(self) -> Tensor:
        if self._on_host:
            return self.sums
        top = self.sums.topk(min(TOP_IDS_ON_DEVICE, self.sums.numel()))
        rest = (self.sums.sum() - top.values.sum()).clamp_min(0.0)
        slack = torch.minimum(top.values[-1], rest)
        return torch.cat([torch.stack([rest, slack]), top.values, top.indices.double()])

    @property
    def build(self) -> Callable[[Floats], IdSums]:
        """Reads `part` from the host."""
        return IdSums.dense if self._on_host else _from_top


def _from_top(part: Floats) -> IdSums:
    count = (part.size - 2) // 2
    amounts, ids = part[2 : 2 + count], part[2 + count :].astype(np.int64)
    held = amounts > 0
    sums = IdSums.of(ids[held], amounts[held])
    return IdSums(ids=sums.ids, amounts=sums.amounts, rest=float(part[0]), slack=float(part[1]))


class Workspace:
    """Buffers that are used again for each block: fresh ones of this size cost more than the arithmetic."""

    def __init__(self, like: Tensor, *dtypes: torch.dtype) -> None:
        rows = max((block.stop - block.start for block in row_blocks(like)), default=0)
        self._buffers = [torch.empty((rows, like.shape[1]), dtype=dtype, device=like.device) for dtype in dtypes]

    def of(self, block: slice) -> list[Tensor]:
        """The buffers, cut to the size of ``block``."""
        return [buffer[: block.stop - block.start] for buffer in self._buffers]


def span(values: Tensor) -> tuple[float, float]:
    """Least and greatest of a block where that costs nothing, else the widest that they could be."""
    if not on_host(values) or not values.numel():
        return -math.inf, math.inf
    least, greatest = values.aminmax()
    return least.item(), greatest.item()


def nowhere(like: Tensor) -> Tensor:
    """(-Inf, 0, -1): no value, at no place, of no id; filled on the device, since a copy to it would wait."""
    nothing = torch.zeros(3, dtype=torch.float64, device=like.device)
    nothing[:1].fill_(-math.inf)
    nothing[2:].fill_(-1.0)
    return nothing


def stack(values: Sequence[Tensor]) -> Tensor:
    """0-dimensional tensors of any dtype as one row of doubles."""
    if on_host(values[0]):
        return torch.tensor([value.item() for value in values], dtype=torch.float64)
    return torch.stack([value.double() for value in values])


def at(values: Tensor, index: Tensor) -> Tensor:
    """The element at a flat index that is still on the device."""
    return values.reshape(-1).gather(0, index.view(1))[0]
