"""Which rules are in force, why the newest files are not, how they stand on runs, what an edit would change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rlvitals.contract.alert import Severity, Truth
from rlvitals.contract.view import ChannelTest


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBookView:
    """``problems``: what is wrong with the files as they are now, each as "file:line: expected …".

    While there are any, the ``rules`` of ``loaded_at`` go on judging; ``failed_at`` is when the files went bad.
    """

    rules: int
    loaded_at: datetime
    files: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFault:
    """What is wrong with a rule document; ``line`` is 0 where it is wrong elsewhere, and ``words`` say where."""

    line: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCheckView:
    """What a rule document would make of the rules in force. Rules are named "alert/severity"."""

    rules: int
    faults: tuple[RuleFault, ...] = ()
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedRulesView:
    """The rule document over all rule files, as it was last put in force. ``number`` 0: there is none yet."""

    number: int = 0
    text: str = ""
    why: str = ""
    changed_at: datetime | None = None
    changed_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSourceView:
    """A rule as a document of its own, and where it was written."""

    rule: str
    severity: Severity
    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingView:
    """How a rule stands on one run, as `RuleView` says it for one."""

    run: str
    truth: Truth
    dormant: bool = False
    reason: str = ""
    value: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBoardRow:
    """A rule in force, with how it stands on the runs that are looked at, in the order of `RuleBoardView.runs`.

    ``reason`` says where the threshold comes from, ``where`` which file and line the rule is of.
    """

    rule: str
    severity: Severity
    group: str
    expr: str
    summary: str
    reason: str
    where: str
    metrics: tuple[str, ...] = ()
    acts: str = ""
    standings: tuple[StandingView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRun:
    id: str
    name: str
    project: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBoardView:
    """Every rule in force on the chosen run, or on those that are going on; ``left_out`` are further ones."""

    runs: tuple[BoardRun, ...]
    rules: tuple[RuleBoardRow, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedView:
    """How far a run's steps have been judged; None where there is none yet."""

    step: int | None
    last_step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTestView:
    """What became of a test message about a rule; ``deaf`` are the channels that would not have heard of it."""

    rule: str
    severity: Severity
    tests: tuple[ChannelTest, ...] = ()
    deaf: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedAlert:
    """An alert that would have fired at ``step``; ``resolved_step`` None: open at the end."""

    alert: str
    severity: Severity
    step: int
    resolved_step: int | None = None
    metric: str = ""
    value: float | None = None
    threshold: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRun:
    run: str
    steps: int
    alerts: tuple[TriedAlert, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRule:
    """How often a warning or worse fired and was right, and on which bad runs it spoke in time."""

    alert: str
    severity: Severity
    fired: int
    right: int
    precision: float
    named: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDifference:
    """The steps at which an alert fired under the rules that were tried, and under those they are held against."""

    run: str
    alert: str
    severity: Severity
    ours: tuple[int, ...]
    theirs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestView:
    """Rules tried on past runs; ``quiet`` are bad runs of which nothing right was said."""

    runs: tuple[TriedRun, ...]
    rules: tuple[TriedRule, ...]
    bad_runs: int
    quiet: tuple[str, ...]
    false_alarms: int
    healthy_steps: int
    false_per_thousand: float
    differences: tuple[TriedDifference, ...] = ()
