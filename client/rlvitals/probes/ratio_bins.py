"""|log ratio| in 96 log bins from 1e-4 to 100, one more below and one above: a quantile is at most 15.5 % high."""

from __future__ import annotations

import math

LOW, HIGH, BINS = 1e-4, 1e2, 96
PER_NAT = BINS / math.log(HIGH / LOW)
SHIFT = 1.0 - math.log(LOW) * PER_NAT
LEAST = LOW / 2
"""Whatever is smaller goes into the bin below: log of 0 is never taken."""
