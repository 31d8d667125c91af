"""Which alerts a channel hears of and a silence covers: by project, run, rule, severity or the run's tags."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from rlvitals.contract.alert import Alert
from rlvitals.contract.report import RunInfo

FIELDS = ("project", "run", "rule", "metric", "severity", "framework", "model", "tag")
_FORM = re.compile(rf"\s*({'|'.join(FIELDS)})\s*(!?=)\s*(.+?)\s*", re.DOTALL)
_WILD = re.compile(r"[*?[\s]")


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

    @classmethod
    def exactly(cls, field: str, value: str) -> Matcher:
        """Of this very value, whatever characters are in it."""
        return cls(field=field, pattern=_WILD.sub(lambda found: f"[{found[0]}]", value))

    def __str__(self) -> str:
        """What `read` makes the same matcher of."""
        return f"{self.field}{'!=' if self.negated else '='}{self.pattern}"

    @property
    def literal(self) -> str | None:
        """The one value that it is like; None where there are others, or where it says which it is not."""
        return None if self.negated or any(sign in self.pattern for sign in "*?[") else self.pattern

    def matches(self, alert: Alert, run: RunInfo) -> bool:
        """A run matches by name or by id, a tag by any of its tags."""
        alike = any(fnmatchcase(value, self.pattern) for value in _values(self.field, alert, run))
        return alike is not self.negated


def _values(field: str, alert: Alert, run: RunInfo) -> tuple[str, ...]:
    if field == "run":
        return (run.id, run.name)
    if field == "tag":
        return run.tags
    of_run = {"project": run.project, "framework": run.framework, "model": run.model}
    of_alert = {"rule": alert.rule, "metric": alert.metric, "severity": alert.severity.value}
    return ({**of_run, **of_alert}[field],)
