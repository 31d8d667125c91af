"""What the query API answers about several runs side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract.report import Json
from rlvitals.contract.view import Light, RunState


class Axis(str, Enum):
    """Along what runs are compared: optimizer steps, tokens, completions, or seconds since the first report."""

    STEP = "step"
    TOKENS = "tokens"
    SAMPLES = "samples"
    TIME = "time"


class Likeness(str, Enum):
    """``same``: equal in every common point. ``together``: never further apart than both scatter."""

    SAME = "same"
    TOGETHER = "together"
    APART = "apart"
    REJOINED = "rejoined"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """``key`` is how it was asked for: a run's id, or ``run@attempt``. ``fault`` says why it has no place on the
    axis."""

    key: str
    run: str
    attempt: str
    ordinal: int
    project: str
    name: str
    state: RunState
    light: Light
    reason: str = ""
    first_step: int | None = None
    last_step: int | None = None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCurve:
    """As `view.SeriesView`, with the place of each point on the axis in ``at``; ``nan``, ``pos_inf`` and
    ``neg_inf`` are places on the axis too. ``off_axis`` points lie where the axis was not told."""

    key: str
    bucket: int = 1
    at: tuple[float, ...] = ()
    step: tuple[int, ...] = ()
    value: tuple[float, ...] = ()
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    nan: tuple[float, ...] = ()
    pos_inf: tuple[float, ...] = ()
    neg_inf: tuple[float, ...] = ()
    off_axis: int = 0
    missing_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """Where a run leaves the first of the runs, by the stated test of the service; ``reason`` says what was seen.

    ``at`` on the axis; ``step`` is the run's own there, ``reference_step`` the first run's. It is known to
    ``within`` steps. ``different_step`` is the first common step at which the two are not equal, where that was
    looked at.
    """

    key: str
    likeness: Likeness
    reason: str
    at: float | None = None
    step: int | None = None
    reference_step: int | None = None
    within: int = 1
    different_step: int | None = None
    points: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyBand:
    """Between ``low`` and ``high`` lie nine tenths of what the healthy runs had in each stretch of the axis."""

    at: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    middle: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    runs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedMetric:
    metric: str
    curves: tuple[ComparedCurve, ...]
    partings: tuple[Parting, ...] = ()
    band: HealthyBand = field(default_factory=HealthyBand)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """The first of ``runs`` is what the others are held against. ``counted`` says what the axis counts, and
    ``healthy_reason`` how the ``healthy`` runs behind the curves were chosen, or why there are none."""

    axis: Axis
    counted: str
    runs: tuple[ComparedRun, ...]
    metrics: tuple[ComparedMetric, ...]
    healthy: tuple[str, ...] = ()
    healthy_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """A setting by its dotted name. A run that did not tell it is not in ``values``; null is a setting that is
    not set."""

    name: str
    values: Json
    alike: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsView:
    """The settings of several runs: those that differ first. ``untold`` runs told none at all."""

    runs: Mapping[str, str]
    settings: tuple[SettingView, ...]
    different: int
    untold: tuple[str, ...] = ()
