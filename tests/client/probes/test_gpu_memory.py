"""The books of a device's allocator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from rlvitals.contract.metrics import BY_NAME
from rlvitals.probes.memory import METRICS, read_books, tally_memory

BOOKS = {"memory_allocated": 5, "memory_reserved": 8, "max_memory_allocated": 7}


def backend(books: dict[str, int]) -> SimpleNamespace:
    return SimpleNamespace(**{name: lambda device, held=held: held for name, held in books.items()})


def test_what_the_allocator_says_is_told_and_the_fullest_writer_wins() -> None:
    device = torch.device("cuda", 0)
    tally = read_books(backend(BOOKS), device) + read_books(backend(BOOKS | {"memory_reserved": 9}), device)
    assert tally.measured().values == dict(zip(METRICS, (5.0, 9.0, 7.0), strict=True))
    assert set(METRICS) <= set(BY_NAME)


def test_on_a_cpu_and_without_books_it_is_missing_with_the_reason() -> None:
    cpu = tally_memory("cpu").measured()
    assert set(cpu.missing) == set(METRICS)
    assert "CPU" in cpu.missing[METRICS[0]]
    assert "does not say" in read_books(SimpleNamespace(), torch.device("mps")).measured().missing[METRICS[0]]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="NO GPU: its memory was not read")
def test_a_tensor_on_the_gpu_is_counted() -> None:
    before = tally_memory("cuda").measured().values[METRICS[0]]
    held = torch.zeros(1 << 20, device="cuda")
    assert tally_memory("cuda").measured().values[METRICS[0]] >= before + held.nbytes
