"""Which alerts a channel hears of: by project, run, rule, severity or the run's tags, as shell patterns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rlvitals.contract.alert import Transition
from rlvitals.contract.report import RunInfo

FIELDS = ("project", "run", "rule", "metric", "severity", "framework", "model", "tag")
_FORM = re.compile(rf"\s*({'|'.join(FIELDS)})\s*(!?=)\s*(.+?)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """``field`` is (``negated``: is not) like ``pattern``, where * and ? stand for any text or character."""

    field: str
    pattern: str
    negated: bool = False

    @classmethod
    def read(cls, text: str) -> Matcher:
        """From ``project=math-*`` or ``rule!=reward_flat``. Raises ValueError that says what was expected."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(
                f"expected FIELD=PATTERN or FIELD!=PATTERN, FIELD of {', '.join(FIELDS)}, got {text!r}"
            )
        return cls(field=found[1], pattern=found[3], negated=found[2] == "!=")

    def holds(self, transition: Transition, run: RunInfo) -> bool:
        """A run matches by name or by id, a tag by any of its tags."""
        alike = any(fnmatchcase(value, self.pattern) for value in _values(self.field, transition, run))
        return alike is not self.negated


def _values(field: str, transition: Transition, run: RunInfo) -> tuple[str, ...]:
    alert = transition.alert
    if field == "run":
        return (run.id, run.name)
    if field == "tag":
        return run.tags
    of_run = {"project": run.project, "framework": run.framework, "model": run.model}
    of_alert = {"rule": alert.rule, "metric": alert.metric, "severity": alert.severity.value}
    return ({**of_run, **of_alert}[field],)
