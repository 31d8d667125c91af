"""What a check says: a verdict, its evidence, and the fix."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """From clean to broken. SKIPPED is no judgement: what the check needs was not given."""

    OK = "ok"
    INFO = "info"
    WARN = "warn"
    FATAL = "fatal"
    SKIPPED = "skipped"

    @property
    def rank(self) -> int:
        """How bad it is; below all others where nothing was judged."""
        return _RANKS[self]


_RANKS = {Verdict.SKIPPED: -1, Verdict.OK: 0, Verdict.INFO: 1, Verdict.WARN: 2, Verdict.FATAL: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One answer of one check.

    ``check`` is its id: T1 to T21 tokenizer, template and model, D data, L length budget, C configuration,
    V versions. ``subject`` is the line that a table shows, ``evidence`` the ids, tokens, keys or rows that prove
    it, ``fix`` the key or code line to change, ``where`` the file, line or key it was seen in.
    """

    check: str
    verdict: Verdict
    subject: str
    evidence: str
    fix: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Findings in the order of the checks."""

    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Report:
        return cls(tuple(findings))

    def __add__(self, other: Report) -> Report:
        return Report(self.findings + other.findings)

    @property
    def worst(self) -> Verdict:
        """The worst verdict among the findings; OK without any, SKIPPED where nothing was judged."""
        return max((finding.verdict for finding in self.findings), key=lambda v: v.rank, default=Verdict.OK)

    @property
    def exit_code(self) -> int:
        """0 without a fatal finding, else 2; see `code`."""
        return self.code()

    def code(self, *, strict: bool = False) -> int:
        """The exit status of a command: 2 with a fatal finding, 1 with a warning where ``strict``, else 0."""
        rank = self.worst.rank
        if rank == Verdict.FATAL.rank:
            return 2
        return 1 if strict and rank == Verdict.WARN.rank else 0

    def at_least(self, verdict: Verdict) -> tuple[Finding, ...]:
        """Findings as bad as ``verdict`` or worse."""
        return tuple(finding for finding in self.findings if finding.verdict.rank >= verdict.rank)

    def of_check(self, check: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.check == check)
