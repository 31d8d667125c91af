"""What a training process says: steps, completions, histograms, events; and what the service answers.

Every record of a run is numbered by (run, attempt, writer, seq), so a resend changes nothing.
A metric that could not be measured is *missing*: absent from ``values``, with the reason in ``missing``.
NaN and the infinities are values like any other and are never used to say "missing".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract.command import Command, Knob, Outcome

PROTOCOL = 1
RECEIPT_HEARTBEAT_S = 15.0
PAUSED_HEARTBEAT_S = 2.0

JsonValue = object
Json = Mapping[str, JsonValue]


class Phase(str, Enum):
    """What the training loop is doing, so that a long evaluation is not taken for a stall."""

    STARTING = "starting"
    ROLLOUT = "rollout"
    UPDATE = "update"
    EVAL = "eval"
    CHECKPOINT = "checkpoint"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"


class EventKind(str, Enum):
    PHASE = "phase"
    CHECKPOINT = "checkpoint"
    HOOK = "hook"
    ATTEMPT = "attempt"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Who is training.

    ``config`` holds the run's own settings by the names that rules use (``group_size``, ``length_cap``,
    ``kl_coef``, ``kl_target``, ``loss_type``, …) beside the trainer's; secrets are removed by the client.
    ``capabilities`` says for each command kind whether this integration can do it: an empty string means yes,
    anything else is the reason why not. ``knobs`` are settings of the user's own that may be changed, by name.
    """

    id: str
    project: str = "default"
    name: str = ""
    framework: str = "loop"
    model: str = ""
    config: Json = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    capabilities: Mapping[str, str] = field(default_factory=dict)
    knobs: Mapping[str, Knob] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extreme:
    """The token at which a metric's extreme value was attained.

    ``position`` counts completion tokens from 0; ``sample`` is the row in the step's batch;
    ``masked`` is True where the loss does not train on the token.
    """

    value: float
    token_id: int | None = None
    position: int | None = None
    sample: int | None = None
    masked: bool | None = None
    token: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One optimizer step of one writer. ``time_s`` is seconds since the Unix epoch, UTC."""

    seq: int
    step: int
    time_s: float
    values: Mapping[str, float]
    missing: Mapping[str, str] = field(default_factory=dict)
    extremes: Mapping[str, Extreme] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between ``edges`` (``len(edges) == len(counts) + 1``)."""

    seq: int
    step: int
    metric: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenDetail:
    """What stands behind a completion's first token ids.

    ``pieces`` are the bytes of each id, in hexadecimal digits, which a decoder may have replaced by U+FFFD; an id
    that has none stands for no token. ``kinds`` says what an id is where it is no ordinary token: ``special``,
    ``added``, ``reserved``, ``unassigned``, ``out_of_range``. ``scores`` has a value of each token in their order
    by name: ``logp`` (of the policy that is trained, nat), ``rollout_logp`` (of the sampler, nat), ``ref_logp``
    (of the reference, nat), ``advantage``; None where a token has none.
    """

    pieces: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One completion. It is untrusted text: whoever shows it must escape it.

    ``why`` says how it came to be kept: ``reservoir``, ``worst_utf8``, ``worst_ratio``, ``worst_length``.
    """

    seq: int
    step: int
    sample: int
    completion: str
    prompt: str = ""
    token_ids: tuple[int, ...] = ()
    reward: float | None = None
    truncated: bool | None = None
    invalid_utf8: int | None = None
    why: str = "reservoir"
    tokens: TokenDetail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    seq: int
    time_s: float
    kind: EventKind
    step: int | None = None
    payload: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The process is alive (``time_s``); progress is told by the steps, not by this."""

    time_s: float
    phase: Phase = Phase.STARTING
    last_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBatch:
    """``epoch`` is the store's that the client last heard of ("" at first).

    Where it is not the store's own, the store takes nothing and answers with its own epoch and what it has, so
    that the client begins again from there. ``heir_of`` are earlier attempts of the run that have ended and of
    which this one knows what they did with each command: it may be given what was given to them.
    """

    run: RunInfo
    attempt: str
    writer: str = "main"
    protocol: int = PROTOCOL
    epoch: str = ""
    heir_of: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    texts: tuple[Text, ...] = ()
    histograms: tuple[Histogram, ...] = ()
    events: tuple[Event, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    heartbeat: Heartbeat | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What could not be stored and why; the rest of the batch was. ``line`` counts rows (or lines) from 1."""

    line: int
    field: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The service's answer, sent after its commit.

    All records of this writer up to and including ``stored_through`` are durable. ``epoch`` changes when the
    store was restored from a backup: the client then rewinds to what it still keeps.
    """

    epoch: str
    stored_through: int
    stored: int = 0
    duplicates: int = 0
    refused: tuple[Refusal, ...] = ()
    commands: tuple[Command, ...] = ()
    heartbeat_s: float = RECEIPT_HEARTBEAT_S
    protocol: int = PROTOCOL
