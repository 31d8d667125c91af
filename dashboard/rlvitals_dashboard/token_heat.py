"""What can be told of each token, and how hot it is drawn. Pure. NaN, the infinities and missing are not heat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlvitals.contract.report import TokenDetail
from rlvitals_dashboard.language import phrase

Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """``bounds`` are the sizes from which on it is one level hotter. ``needs`` are names of scores."""

    key: str
    title: str
    unit: str
    needs: tuple[str, ...]
    bounds: tuple[float, float, float, float]
    value: Callable[..., float]
    size: Callable[[float], float] = abs


def _exp(value: float) -> float:
    return math.inf if value > 709 else math.exp(value)


def _k3(logp: float, ref_logp: float) -> float:
    difference = ref_logp - logp
    return _exp(difference) - difference - 1 if not math.isinf(difference) else math.inf


def _ratio(logp: float, rollout_logp: float) -> float:
    return _exp(logp - rollout_logp)


def _log_size(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def _itself(value: float) -> float:
    return value


HEATS = (
    Heat(
        key="kl",
        title=phrase("KL to the reference (k3)"),
        unit="nat",
        needs=("logp", "ref_logp"),
        bounds=(0.01, 0.1, 1.0, 10.0),
        value=_k3,
    ),
    Heat(
        key="ratio",
        title=phrase("Ratio of trainer to sampler"),
        unit="",
        needs=("logp", "rollout_logp"),
        bounds=(0.05, 0.2, 0.7, 2.0),
        value=_ratio,
        size=_log_size,
    ),
    Heat(
        key="advantage",
        title=phrase("Advantage"),
        unit="",
        needs=("advantage",),
        bounds=(0.1, 0.5, 1.0, 2.0),
        value=_itself,
    ),
    Heat(
        key="surprise",
        title=phrase("Surprise (−log-prob)"),
        unit="nat",
        needs=("logp",),
        bounds=(1.0, 2.0, 4.0, 8.0),
        value=lambda logp: -logp,
    ),
    Heat(
        key="rollout_surprise",
        title=phrase("Surprise of the sampler"),
        unit="nat",
        needs=("rollout_logp",),
        bounds=(1.0, 2.0, 4.0, 8.0),
        value=lambda logp: -logp,
    ),
)
"""``size`` gives what is compared with the bounds; below 0 it is drawn as cold."""
BY_KEY = {heat.key: heat for heat in HEATS}


def offered(detail: TokenDetail | None) -> tuple[Heat, ...]:
    """Those of which each score was told."""
    scores = detail.scores if detail is not None else {}
    return tuple(heat for heat in HEATS if all(scores.get(name) for name in heat.needs))


def value_at(heat: Heat, detail: TokenDetail, place: int) -> float | None:
    """None where a score is missing; NaN where one is NaN or the difference of two infinities."""
    found = [told[place] if place < len(told := detail.scores.get(name, ())) else None for name in heat.needs]
    known = [value for value in found if value is not None]
    if len(known) < len(found):
        return None
    return math.nan if any(map(math.isnan, known)) else heat.value(*known)


def look(heat: Heat, value: float | None) -> str:
    """The class of a token: ``missing``, ``nan``, ``pos-inf``, ``neg-inf``, ``heat-0``… or ``cold-1``…."""
    if value is None:
        return "missing"
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "pos-inf" if value > 0 else "neg-inf"
    signed = heat.size(value) if heat.size is not abs else value
    size = math.inf if math.isinf(signed) else abs(signed)
    level = sum(size >= bound for bound in heat.bounds)
    return f"{'cold' if signed < 0 else 'heat'}-{level}"


def worst(heat: Heat, values: Values) -> float | None:
    """Of the tokens of one cluster: what is not finite before what is, then the largest."""
    known = [value for value in values if value is not None]
    broken = [value for value in known if not math.isfinite(value)]
    if broken:
        return broken[0]
    return max(known, key=lambda value: abs(heat.size(value)), default=None)
