"""When to try next: back-off with jitter after failures, slowly after a refusal, at once after success."""

from __future__ import annotations

from dataclasses import dataclass

BASE_S = 0.25
CAP_EARLY_S = 3.0
CAP_LATE_S = 30.0
REFUSED_RETRY_S = 30.0


@dataclass(slots=True)
class Link:
    """State of the connection to the service. ``since_s`` is when the present trouble began, on any one clock."""

    failures: int = 0
    since_s: float = 0.0
    next_s: float = 0.0

    @property
    def well(self) -> bool:
        return self.failures == 0

    def succeeded(self) -> None:
        self.failures = 0
        self.next_s = 0.0

    def failed(
        self, now_s: float, *, jitter: float, retry_after_s: float | None = None, refused: bool = False
    ) -> None:
        """``jitter`` is uniform in 0 … 1. The cap grows with the outage: a short one is caught up with quickly."""
        if self.failures == 0:
            self.since_s = now_s
        self.failures += 1
        cap = min(CAP_LATE_S, max(CAP_EARLY_S, (now_s - self.since_s) / 10))
        delay = min(cap, BASE_S * 2.0 ** min(self.failures, 16))
        if refused:
            delay = REFUSED_RETRY_S
        self.next_s = now_s + max(delay * (0.5 + 0.5 * jitter), retry_after_s or 0.0)
