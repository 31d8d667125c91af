"""A rule in Prometheus' words, compiled and ready to be judged. `loader` reads it from YAML."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime

from rlvitals.contract.alert import Severity
from rlvitals.contract.command import CommandKind
from rlvitals_monitor.rules.program import Program, Remembering

MOST_OF = 100
"""Most observed steps that ``of: [k, n]`` may look back."""
MOST_WARMUP = 10_000

_DURATION = re.compile(r"(\d{1,6})\s*(steps?|s|m|h)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
PLACEHOLDERS = ("value", "percent", "threshold", "step", "metric")


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """How long something must hold: so many observed steps running, or so many seconds by the steps' own time."""

    steps: int = 0
    seconds: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Duration:
        """ "20 steps", "30s", "5m", "2h"; raises ValueError saying what was expected."""
        match = _DURATION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f'expected a duration such as "20 steps" or "5m", got {text!r}')
        number, unit = int(match[1]), match[2]
        return cls(steps=number) if unit.startswith("step") else cls(seconds=number * _SECONDS[unit])

    def over(self, steps: int, since: datetime, now: datetime) -> bool:
        """Whether it is over after ``steps`` observed steps that began at ``since``."""
        return steps >= self.steps and (now - since).total_seconds() >= self.seconds

    def __str__(self) -> str:
        if self.seconds:
            return f"{self.seconds:g}s"
        return f"{self.steps} step{'' if self.steps == 1 else 's'}"


ONE_STEP = Duration(steps=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What to propose when the alert fires.

    ``argument`` is evaluated on the step that fires. Nothing is proposed while an alert named in ``unless`` is
    firing: moving a coefficient then treats a symptom.
    """

    command: CommandKind
    argument: Program | None = None
    unless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``alert`` and ``severity`` together name a rule; the critical rule of an alert inhibits its weaker twins.

    ``hold`` is YAML's ``for``. Of each entry of ``needs`` at least one metric must be there, or the rule is
    dormant. While an alert named in ``inhibited_by`` fires, this rule's does not begin: it would be its symptom.
    ``reason`` says where the threshold comes from. ``where`` is file and line, ``source`` the YAML itself.
    """

    alert: str
    severity: Severity
    group: str
    expr: Program
    clear: Program | None = None
    hold: Duration = ONE_STEP
    of: tuple[int, int] = (1, 1)
    keep_firing_for: Duration = ONE_STEP
    warmup: int = 0
    needs: tuple[tuple[str, ...], ...] = ()
    summary: str = ""
    description: str = ""
    reason: str = ""
    runbook: str = ""
    inhibited_by: tuple[str, ...] = ()
    action: Action | None = None
    where: str = ""
    source: str = field(default="", repr=False, compare=False)
    key: str = field(init=False)
    programs: tuple[Program, ...] = field(init=False)
    remembering: tuple[Remembering, ...] = field(init=False)
    learns: bool = field(init=False)
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Fills what is asked for at every step: ``remembering`` holds each call with a memory once, in order."""
        argument = self.action.argument if self.action is not None else None
        programs = tuple(program for program in (self.expr, self.clear, argument) if program is not None)
        calls = {call.key: call for program in programs for call in program.remembering}
        # The fingerprint changes when what was remembered for this rule no longer fits it.
        parts = "\n".join(map(str, [*(program.text for program in programs), self.of, self.hold, self.warmup]))
        object.__setattr__(self, "key", f"{self.alert}/{self.severity.value}")
        object.__setattr__(self, "programs", programs)
        object.__setattr__(self, "remembering", tuple(calls.values()))
        object.__setattr__(self, "learns", bool(calls) or self.of[1] > 1)
        object.__setattr__(self, "fingerprint", hashlib.sha256(parts.encode()).hexdigest()[:16])


def as_document(rule: Rule) -> str:
    """The rule as a rule file of its own, as it is written."""
    body = "".join(f"      {line}\n" if line else "\n" for line in rule.source.split("\n"))
    return f"groups:\n  - name: {rule.group}\n    rules:\n    - {body.lstrip(' ')}"


def fill(text: str, value: float | None, threshold: float | None, step: int, metric: str) -> str:
    """Puts the numbers into an annotation's placeholders; ``{percent}`` is the value of a share, times 100."""
    words = {
        "value": _show(value),
        "percent": "unknown" if value is None else f"{100 * value:.3g} %",
        "threshold": _show(threshold),
        "step": str(step),
        "metric": metric,
    }
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), text)


def placeholders(text: str) -> list[str]:
    return re.findall(r"\{(\w*)\}", text)


def _show(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.4g}"
