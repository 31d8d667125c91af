"""What was measured of each token of the few completions that people may read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlvitals.contract.report import TokenDetail
from rlvitals.integrations.samples import Sample
from rlvitals.integrations.token_details import SCORED_TOKENS_MAX
from rlvitals.probes.arrays import is_tensor

DIGITS = 5
OF_TRL = {
    "logp": "old_per_token_logps",
    "rollout_logp": "sampling_per_token_logps",
    "ref_logp": "ref_per_token_logps",
    "advantage": "advantages",
}
OF_LOOP = {"logp": "logp", "rollout_logp": "rollout", "ref_logp": "ref", "advantage": "advantages"}
"""By the names of `TokenDetail.scores` the keys of a batch's columns, (B, T) or (B,)."""


def scored(sample: Sample, row: int, columns: Mapping[str, Any], keys: Mapping[str, str]) -> Sample:
    """With the scores of its ``row``. Copies that one row from wherever it lies, which waits for its device."""
    known = {name: columns.get(key) for name, key in keys.items()}
    count = min(len(sample.token_ids), SCORED_TOKENS_MAX)
    found = {name: _row(column, row, count) for name, column in known.items() if _holds_data(column)}
    told = {name: values for name, values in found.items() if values}
    if not told:
        return sample
    detail = sample.tokens or TokenDetail()
    return replace(sample, tokens=replace(detail, scores={**told, **detail.scores}))


def scored_on_host(samples: Sequence[Sample], columns: Mapping[str, Any], offset: int) -> list[Sample]:
    """Those whose rows are among ``columns``, from number ``offset`` on, with their scores.

    Nothing is read that lies on a device or that says its rows otherwise: the loss must not wait.
    """
    known = [columns.get(key) for key in OF_LOOP.values()]
    sizes = {len(column) for column in known if column is not None and hasattr(column, "__len__")}
    if columns.get("rows") is not None or len(sizes) != 1 or not all(map(_on_host, known)):
        return list(samples)
    (size,) = sizes
    return [
        scored(s, s.sample - offset, columns, OF_LOOP) if 0 <= s.sample - offset < size else s for s in samples
    ]


def _holds_data(column: Any) -> bool:
    """A tensor on the meta device has a shape and nothing in it."""
    return column is not None and not (is_tensor(column) and column.device.type == "meta")


def _on_host(column: Any) -> bool:
    return not is_tensor(column) or column.device.type == "cpu"


def _row(column: Any, row: int, count: int) -> tuple[float, ...]:
    values = column[row]
    if getattr(values, "ndim", 0):
        return tuple(map(_short, values[:count].tolist()))
    return (_short(float(values)),) * count


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else float(value)
