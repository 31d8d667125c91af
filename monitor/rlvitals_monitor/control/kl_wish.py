"""What a KL policy would do if nothing held it."""

from __future__ import annotations

from dataclasses import dataclass

from rlvitals_monitor.control.kl_decision import KlWhy


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """``factor`` on the coefficient in force, 1 for none; ``hold`` names a reason of the policy's own."""

    factor: float
    reason: str
    hold: KlWhy | None = None
