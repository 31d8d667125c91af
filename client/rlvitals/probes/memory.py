"""How much of a GPU's memory this process holds, by its allocator's own books: nothing waits for the device."""

from __future__ import annotations

from typing import Any

import torch

from rlvitals.contract.report import Extreme
from rlvitals.probes.tally import Tally

METRICS = ("progress.gpu_memory_bytes", "progress.gpu_memory_reserved_bytes", "progress.gpu_memory_peak_bytes")
ON_CPU = "the model is on the CPU: there is no GPU memory"
NO_BOOKS = "this device's allocator does not say how much it holds"
_BOOKS = ("memory_allocated", "memory_reserved", "max_memory_allocated")


def tally_memory(device: torch.device | str) -> Tally:
    """Bytes in tensors, bytes that the allocator reserved, and the most in tensors since that was last reset.

    Missing with the reason on a CPU and on devices whose allocator keeps no such books.
    """
    where = torch.device(device)
    if where.type == "cpu":
        return Tally.absent(METRICS, ON_CPU)
    return read_books(getattr(torch, where.type, None), where)


def read_books(backend: Any, device: torch.device) -> Tally:
    """The same, from the module of a device's kind (``torch.cuda``, ``torch.xpu``)."""
    books = [getattr(backend, name, None) for name in _BOOKS]
    if None in books:
        return Tally.absent(METRICS, NO_BOOKS)
    bytes_held = (float(book(device)) for book in books if book is not None)
    return Tally(maxima={name: Extreme(value=held) for name, held in zip(METRICS, bytes_held, strict=True)})
