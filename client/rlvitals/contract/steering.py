"""What the query API answers about steering: which KL policy is at the wheel, and what a command did to a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from rlvitals.contract.report import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalEffect:
    """One guiding signal around a command: every value, the finite ones' means on either side, and its ``turn``.

    ``turn`` is ``better``, ``same``, ``worse``, ``told`` (no direction of health) or ``not judged``; ``missing``
    where there are too few values for it.
    """

    metric: str
    turn: str
    reason: str
    missing: bool = False
    before: float | None = None
    after: float | None = None
    step: tuple[int, ...] = ()
    value: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectView:
    """What became of a run after a command: ``helped``, ``no effect``, ``worse``, ``too early`` or ``not judged``.

    The steps from ``first`` to ``last`` were looked at; the command was applied at ``step``.
    """

    command_id: str
    run: str
    verdict: str
    reason: str
    attempt: str = ""
    step: int | None = None
    first: int | None = None
    last: int | None = None
    signals: tuple[SignalEffect, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringView:
    """Which KL policy steers a run or a project's runs. ``none``, for a run: nobody, whatever its project's is.

    ``settings``: its own ``target`` (nats per token), ``factor`` and ``change_steps``. ``warning`` is for people.
    """

    scope: str
    name: str
    kl_policy: str
    changed_at: datetime
    changed_by: str
    settings: Json = field(default_factory=dict)
    warning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeredView:
    """How a run is steered: by ``choice``, and what its policy said of ``step``, the last one that it saw.

    ``value`` is the coefficient that it asked for, None where it held. ``low`` and ``high`` bound it.
    """

    run: str
    choice: SteeringView | None = None
    step: int | None = None
    why: str = ""
    reason: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    stopped: str = ""
