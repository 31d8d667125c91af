"""Series as JSON: the same words as by `ContractResponse`, with columns of numbers written whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import orjson

from rlvitals.contract.codec import encode_number
from rlvitals.contract.view import SeriesView
from rlvitals_monitor.api.answer_language import told
from rlvitals_monitor.api.deps import ContractResponse

_NAMES = tuple(field.name for field in fields(SeriesView))


class SeriesResponse(ContractResponse):
    """A chart has hundreds of numbers, and to look at each by itself takes longer than to read them."""

    def render(self, content: Sequence[SeriesView]) -> bytes:
        try:
            return orjson.dumps(told([_plain(view) for view in content]))
        except TypeError:
            return super().render(content)


def _plain(view: SeriesView) -> dict[str, Any]:
    """``low`` and ``high`` are finite or missing; only ``value`` may have what JSON does not know."""
    plain = {name: getattr(view, name) for name in _NAMES}
    finite = all(map(math.isfinite, view.value))
    return plain | {"value": view.value if finite else [encode_number(value) for value in view.value]}
