"""Series go out in the words in which every contract type does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rlvitals.contract.codec import loads
from rlvitals.contract.view import SeriesView
from rlvitals_monitor.api.deps import ContractResponse
from rlvitals_monitor.api.series_response import SeriesResponse

FRAME: dict[str, Any] = {"run": "r", "attempt": "a", "metric": "m", "bucket": 1}
PLAIN = SeriesView(**FRAME, step=(1, 2), value=(0.1, 2.0), low=(None, 1e308), high=(None, -5e-324), nan=(1,))
KINDS = SeriesView(**FRAME, step=(1, 2, 3), value=(math.nan, math.inf, -math.inf), missing_reason="why\u2028")
BROKEN = SeriesView(**FRAME | {"metric": "\udcff"}, step=(2**70,), value=(1.0,))


@pytest.mark.parametrize("views", [[], [PLAIN], [PLAIN, KINDS], [BROKEN]])
def test_a_chart_goes_out_in_the_contracts_words(views: list[SeriesView]) -> None:
    assert loads(bytes(SeriesResponse(views).body)) == loads(bytes(ContractResponse(views).body))
