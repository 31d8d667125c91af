"""What guards write down is taken once, adds up, and is asked of sources that still live."""

from __future__ import annotations

import threading

import torch

from rlvitals.probes.ledger import Ledger
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally


def counted(amount: int) -> Reduction:
    part = torch.tensor([float(amount)], dtype=torch.float64)
    return Reduction(parts=(part,), build=lambda parts: Tally(counts={"guard.rows": int(parts[0][0])}))


class Source:
    def __init__(self) -> None:
        self.amount = 2

    def counted(self) -> Reduction | None:
        amount, self.amount = self.amount, 0
        return counted(amount) if amount else None


def test_it_adds_up_and_is_taken_once() -> None:
    ledger = Ledger()
    ledger.put(Tally(counts={"guard.rows": 1}))
    ledger.launch(counted(4))
    assert ledger.take() == Tally(counts={"guard.rows": 5})
    assert ledger.take() == Tally.zero()


def test_sources_are_asked_as_long_as_they_live() -> None:
    ledger, source = Ledger(), Source()
    ledger.watch(source)
    assert ledger.take().counts == {"guard.rows": 2}
    assert ledger.take() == Tally.zero()
    del source
    assert ledger.take() == Tally.zero()


def test_threads_lose_nothing() -> None:
    ledger = Ledger()

    def put() -> None:
        for _ in range(200):
            ledger.put(Tally(counts={"guard.rows": 1}))

    threads = [threading.Thread(target=put) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.take().counts == {"guard.rows": 800}
