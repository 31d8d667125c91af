"""What the query API answers: the read side of runs, series, rules, commands and deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from rlvitals.contract.alert import Severity, Truth
from rlvitals.contract.command import Bounds, CommandKind, CommandState, Knob, Policy
from rlvitals.contract.report import Json, TokenDetail


class RunState(str, Enum):
    """``late`` and ``stalled`` heal by themselves."""

    CREATED = "created"
    RUNNING = "running"
    LATE = "late"
    STALLED = "stalled"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"


class Light(str, Enum):
    """The traffic light of a run."""

    GREEN = "green"
    AMBER = "amber"
    RED = "red"
    GREY = "grey"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    id: str
    ordinal: int
    started_at: datetime
    first_step: int | None = None
    last_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as it is now.

    ``firing`` counts its alerts that fire, ``critical`` and ``warnings`` those of a severity. ``gpu_hours`` are
    the ranks times the hours from each attempt's start to its last word; None where the trainer tells no ranks,
    or a log was read. ``tags`` are the trainer's, ``owner``, ``labels`` and ``notes`` what people say of it.
    In a list ``config``, ``capabilities``, ``knobs``, ``attempts`` and ``notes`` are left empty unless asked for.
    """

    id: str
    project: str
    name: str
    framework: str
    model: str
    state: RunState
    light: Light
    reason: str
    created_at: datetime
    last_seen_at: datetime
    last_progress_at: datetime | None
    last_step: int | None
    phase: str
    kl_coef: float | None = None
    steps_per_minute: float | None = None
    firing: int = 0
    tags: tuple[str, ...] = ()
    config: Json = field(default_factory=dict)
    capabilities: Mapping[str, str] = field(default_factory=dict)
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    attempts: tuple[AttemptView, ...] = ()
    critical: int = 0
    warnings: int = 0
    gpu_hours: float | None = None
    owner: str = ""
    labels: tuple[str, ...] = ()
    notes: str = ""
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoices:
    """By what runs can be told apart: each name once, in their order; ``runs`` counts those not deleted."""

    runs: int
    archived: int
    projects: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """One metric over steps, at most ``limit`` buckets.

    Raw (``bucket == 1``): ``value[i]`` at ``step[i]``; NaN and infinities are themselves.
    Bucketed: ``low``/``high`` are the bucket's least and greatest finite values and ``value`` its last one, so a
    spike survives any zoom; ``nan``, ``pos_inf``, ``neg_inf`` list every step with such a value, never thinned
    below one mark a bucket. A step without a report of the metric is missing and simply not listed.
    """

    run: str
    attempt: str
    metric: str
    bucket: int
    step: tuple[int, ...]
    value: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    nan: tuple[int, ...] = ()
    pos_inf: tuple[int, ...] = ()
    neg_inf: tuple[int, ...] = ()
    missing_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView:
    """A metric that a run has (``points > 0``) or should have (``missing_reason``)."""

    metric: str
    points: int
    last_step: int | None = None
    last_value: float | None = None
    missing_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtremeView:
    """The token at which ``metric`` had its extreme value at ``step`` (see `report.Extreme`)."""

    metric: str
    step: int
    value: float
    token_id: int | None = None
    position: int | None = None
    sample: int | None = None
    masked: bool | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextView:
    """One kept completion. Untrusted text: escape it where it is shown.

    ``number`` names it in the service; ``tokens`` is told where it was asked for.
    """

    attempt: str
    step: int
    sample: int
    completion: str
    prompt: str = ""
    token_ids: tuple[int, ...] = ()
    reward: float | None = None
    truncated: bool | None = None
    invalid_utf8: int | None = None
    why: str = ""
    number: int = 0
    tokens: TokenDetail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextStepView:
    """What was kept of one step: how many completions, and among them those cut by the limit and the sequences of
    bytes that are no UTF-8."""

    attempt: str
    step: int
    texts: int
    invalid_utf8: int
    truncated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramView:
    metric: str
    step: int
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    attempt: str
    at: datetime
    kind: str
    step: int | None = None
    payload: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesView:
    """Pass ``version`` back as ``after``: the answer comes as soon as something newer is there."""

    version: int
    last_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    """A rule's live state on one run. ``reason`` explains ``unknown``; ``dormant`` means it cannot run here.

    ``metric`` is the one of ``metrics`` whose ``value`` stands against ``threshold`` at the last judged step.
    """

    rule: str
    severity: Severity
    truth: Truth
    dormant: bool
    reason: str
    expr: str
    summary: str
    value: float | None = None
    threshold: float | None = None
    metrics: tuple[str, ...] = ()
    metric: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """Somebody's approval. One that came by a link without a login is not ``named``."""

    who: str
    named: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandView:
    """A command and what became of it: ``asked_step`` is the run's step when it was asked for, ``step`` when
    applied.

    ``before`` and ``after`` were read back from the trainer; ``reason`` says why it was refused, denied or held
    back. ``persons`` is how many different named people must approve it, ``voices`` who has so far; where one is
    enough a voice without a name will do. ``knob`` is what a ``set_knob`` sets. ``handed_to`` is the attempt that
    has it.
    """

    id: str
    run: str
    kind: CommandKind
    state: CommandState
    created_at: datetime
    expires_at: datetime
    argument: float | None = None
    bounds: Bounds | None = None
    who: str = ""
    why: str = ""
    decided_by: str = ""
    alert_id: str = ""
    rule: str = ""
    asked_step: int | None = None
    reason: str = ""
    before: float | None = None
    after: float | None = None
    step: int | None = None
    decided_at: datetime | None = None
    done_at: datetime | None = None
    knob: str = ""
    persons: int = 1
    voices: tuple[Voice, ...] = ()
    handed_to: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyView:
    """Who may steer: ``scope`` is ``default``, ``project``, ``rule`` or ``run``, ``name`` which one of these.

    ``chosen`` while the service runs, by ``changed_by``; else it is of the service's own settings. ``note`` says,
    as it is chosen, that nothing of this name has been heard of yet.
    """

    scope: str
    name: str
    policy: Policy
    chosen: bool = False
    changed_by: str = ""
    changed_at: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """One line of the append-only audit. ``digest`` is SHA-256 over the line and the digest before it, in hex."""

    at: datetime
    run: str
    command_id: str
    who: str
    what: str
    detail: str = ""
    number: int = 0
    digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCheck:
    """Whether the chain of the audit holds. ``unchained`` lines are older than the chain and not protected.

    ``fault`` says what is wrong with line ``number``; ``head`` is the digest of the last line: who keeps it can
    prove later that nothing was cut off behind it.
    """

    lines: int
    unchained: int
    head: str
    fault: str = ""
    number: int | None = None


class SilencePurpose(str, Enum):
    """Asked for because of an alert, or planned beforehand."""

    SILENCE = "silence"
    MAINTENANCE = "maintenance"


class SilenceState(str, Enum):
    """``resting``: a window that comes again, between two of its times."""

    PENDING = "pending"
    ACTIVE = "active"
    RESTING = "resting"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceView:
    """Alerts that fit every one of ``match`` are told to nobody from ``starts_at`` until ``ends_at``.

    With ``cron``, ``zone`` and ``lasts_s`` only in those hours, which come again; ``now_until`` is when the time
    that is on ends, ``next_at`` when the next one begins.
    """

    id: str
    purpose: SilencePurpose
    state: SilenceState
    match: tuple[str, ...]
    starts_at: datetime
    ends_at: datetime
    created_at: datetime
    who: str = ""
    why: str = ""
    ended_by: str = ""
    cron: str = ""
    zone: str = ""
    lasts_s: float | None = None
    now_until: datetime | None = None
    next_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView:
    """One transition on its way to one channel, as news, reminder (``round``) or escalation.

    It waits (``next_at``, ``answer`` says why) until it is put into a message. ``answer`` then is the provider's
    own words, or why it was dropped. ``run``, ``rule``, ``severity``, ``change`` (firing, resolved, …) and
    ``step`` say what of.
    """

    id: str
    transition_id: str
    channel: str
    state: str
    attempts: int
    next_at: datetime
    answer: str = ""
    delivered_at: datetime | None = None
    purpose: str = "news"
    round: int = 0
    message_id: str = ""
    run: str = ""
    rule: str = ""
    severity: str = ""
    change: str = ""
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendView:
    """One attempt to send a message: ``verdict`` is delivered, retry or permanent, the answer the provider's."""

    number: int
    at: datetime
    verdict: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelView:
    """A place that messages go to. Its address is a secret: only the host is shown.

    ``answer`` is the provider's own words at the last attempt; ``failed`` counts what was given up, ``dropped``
    what was no longer to be said when its time came. A channel that was ``made`` by the API can be changed by it;
    the others are the operator's.
    """

    name: str
    kind: str
    host: str
    severity: Severity
    send_resolved: bool
    signed: bool
    waiting: int = 0
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    answer: str = ""
    made: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTest:
    """What became of a test message, with the provider's own words."""

    channel: str
    delivered: bool
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDeletion:
    """A run that was deleted. Nothing of it is shown any more; its data are removed piece by piece, the audit
    stays."""

    run: str
    deleted_at: datetime
    deleted_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionView:
    """How many days a project's raw points, completions, histograms and whole runs are kept; None is for ever.

    The project "" stands for all that have no line of their own, which are ``inherited`` where they are shown.
    Alerts, commands, rollups and the audit always stay, but with a whole run all but the audit goes.
    """

    project: str
    points_days: float | None = None
    texts_days: float | None = None
    histograms_days: float | None = None
    runs_days: float | None = None
    inherited: bool = False
    changed_at: datetime | None = None
    changed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Cursor paging: pass ``next`` back as ``cursor``; an empty string means that this was the last page."""

    items: tuple[object, ...]
    next: str = ""
