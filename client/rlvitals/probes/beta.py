"""The regularised incomplete beta function, by the standard library alone."""

from __future__ import annotations

import math

_TINY, _ROUNDS, _ENOUGH = 1e-300, 500, 1e-14


def beta_share(a: float, b: float, x: float) -> float:
    """I_x(a, b): how much of a Beta(a, b) distribution lies below ``x``; its limits where a or b is 0.

    Lentz's evaluation of the continued fraction (Press et al., Numerical Recipes, 6.4).
    """
    if x <= 0.0 or (b <= 0.0 and x < 1.0):
        return 0.0
    if x >= 1.0 or a <= 0.0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return math.exp(log_front) * _fraction(a, b, x) / a
    return 1.0 - math.exp(log_front) * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _ROUNDS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away(1.0 + numerator * d)
            c = _away(1.0 + numerator / c)
            value *= c * d
        if abs(c * d - 1.0) < _ENOUGH:
            break
    return value


def _away(value: float) -> float:
    """Not so near to 0 that dividing by it overflows."""
    return value if abs(value) > _TINY else _TINY
