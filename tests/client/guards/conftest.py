"""An empty ledger, and what guards wrote into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.measured import Measured

Taken = Callable[[], Measured]


@pytest.fixture
def taken() -> Iterator[Taken]:
    LEDGER.take()
    yield lambda: LEDGER.take().measured()
    LEDGER.take()
