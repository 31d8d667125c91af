"""What was lost, by reason. One total that is cheap to read at every step."""

from __future__ import annotations

from collections import Counter


class Drops:
    """``total`` counts records for every reason together."""

    def __init__(self) -> None:
        self.total = 0
        self.reasons: Counter[str] = Counter()

    def add(self, reason: str, count: int = 1) -> None:
        if count > 0:
            self.total += count
            self.reasons[reason] += count
