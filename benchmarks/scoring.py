"""What a monitor said of a public failure report, against what the report supports: one measure for everybody.

A case counts as detected if any code of ``replay_expect`` was among the alerts, and its cause as right if the
first one's is one that the case expects or accepts. Nothing may say a code of ``must_not``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

SPOKEN = ("warning", "critical")
LONG = 30
"""A lead has a meaning only in a log of more steps than this."""


class Rang(NamedTuple):
    """One alert: at which record of the log, how severe, and what it is called in the corpus' words."""

    line: int
    severity: str
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    name: str
    benign: bool
    silence_is_right: bool
    detected: bool
    cause_right: bool
    incident: bool
    forbidden: tuple[str, ...]
    critical: int
    early: int
    healthy_steps: int
    lead: int | None
    said: str
    expected: str

    @property
    def good(self) -> bool:
        return self.detected and self.cause_right and not self.forbidden


def score(
    name: str, case: dict[str, Any], rang: Sequence[Rang], causes: Sequence[Sequence[str]], count: int
) -> Score:
    """``causes`` are the incidents' names in order, each with its synonyms; ``count`` is the log's records."""
    spoken = [one for one in rang if one.severity in SPOKEN]
    wanted = {code.partition("@")[0] for code in case["replay_expect"]}
    right = wanted | {code.partition("@")[0] for code in [*case["expect"], *case["also_acceptable"]]}
    silence = "ok" in wanted | set(case["expect"])
    codes = {code for one in rang for code in one.codes}
    bad = case.get("first_bad_line")
    until = bad if bad is not None else count + 1
    early = sum(1 for one in spoken if one.line < until)
    first = next((one.line for one in spoken if set(one.codes) & right), None)
    # an early sign of the very fault is no false alarm: it is the lead
    early_right = sum(1 for one in spoken if one.line < until and set(one.codes) & right and not case["benign"])
    return Score(
        name=name,
        benign=case["benign"],
        silence_is_right=silence,
        detected=bool(codes & wanted) or (silence and not spoken),
        cause_right=bool(set(causes[0]) & right) if causes else silence,
        incident=bool(causes),
        forbidden=tuple(sorted({code for one in spoken for code in one.codes} & set(case["must_not"]))),
        critical=sum(1 for one in spoken if one.severity == "critical"),
        early=early - early_right,
        healthy_steps=until - 1 if bad is not None else count,
        lead=bad - first if bad is not None and first is not None and count > LONG else None,
        said=", ".join(f"{'/'.join(one.codes)} {one.severity[0]} ({one.line})" for one in spoken[:4]) or "quiet",
        expected=", ".join(case["replay_expect"]),
    )


class Totals(NamedTuple):
    """Of all cases: the numbers that goals are set for."""

    detected: int
    failures: int
    caused: int
    told: int
    benign: int
    benign_warned: int
    benign_critical: int
    forbidden: int
    early: int
    healthy_steps: int

    @property
    def early_per_thousand(self) -> float:
        return 1000 * self.early / max(self.healthy_steps, 1)


def totals(scores: Sequence[Score]) -> Totals:
    bad = [s for s in scores if not s.benign]
    benign = [s for s in scores if s.benign]
    told = [s for s in bad if s.incident]
    return Totals(
        detected=sum(s.detected for s in bad),
        failures=len(bad),
        caused=sum(s.cause_right for s in told),
        told=len(told),
        benign=len(benign),
        benign_warned=sum(s.said != "quiet" for s in benign),
        benign_critical=sum(s.critical > 0 for s in benign),
        forbidden=sum(len(s.forbidden) for s in scores),
        early=sum(s.early for s in scores),
        healthy_steps=sum(s.healthy_steps for s in scores),
    )
