"""A report as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rlvitals.preflight.finding import Finding, Report, Verdict
from rlvitals.preflight.terminal import escaped, padded, wrapped

NARROW, COLUMNS_MAX = 84, 160
"""Below, findings are stacked; above, a line would be too long to read."""
_COLOURS = {Verdict.FATAL: "1;31", Verdict.WARN: "33", Verdict.INFO: "36", Verdict.OK: "32", Verdict.SKIPPED: "2"}
_ORDER = (Verdict.FATAL, Verdict.WARN, Verdict.INFO)
_LEAD = 7 + 1 + 4


def table(report: Report, columns: int, *, colour: bool = False, show_all: bool = False) -> str:
    """Worst first, the checks that are well in one line at the end; ``show_all`` gives each of them a line."""
    columns = max(40, min(columns, COLUMNS_MAX))
    verdicts = (*_ORDER, Verdict.OK, Verdict.SKIPPED) if show_all else _ORDER
    lines: list[str] = []
    for verdict in verdicts:
        for finding in report.findings:
            if finding.verdict is verdict:
                lines += _block(finding, columns, colour=colour)
    if not show_all:
        lines += _quiet(report, columns)
    lines += [_paint(line, _COLOURS[report.worst], colour=colour) for line in wrapped(_summary(report), columns)]
    return "\n".join(lines) + "\n"


def as_json(report: Report, version: str, exit_code: int) -> str:
    """One object; all text is ASCII with escapes, whatever the data held."""
    findings = [
        {
            "check": f.check,
            "verdict": f.verdict.value,
            "subject": f.subject,
            "evidence": f.evidence,
            "fix": f.fix,
            "where": f.where,
        }
        for f in report.findings
    ]
    whole = {"rlvitals": version, "worst": report.worst.value, "exit_code": exit_code, "findings": findings}
    return json.dumps(whole, indent=2) + "\n"


def _block(finding: Finding, columns: int, *, colour: bool) -> Iterator[str]:
    subject, evidence, fix, where = map(escaped, (finding.subject, finding.evidence, finding.fix, finding.where))
    verdict = _paint(f"{finding.verdict.value.upper():7}", _COLOURS[finding.verdict], colour=colour)
    told = [*wrapped(subject, _told_width(columns)), *wrapped(evidence, _told_width(columns))]
    if where and where not in evidence:
        told += wrapped(f"at {where}", _told_width(columns))
    if columns >= NARROW:
        right = list(wrapped(f"fix: {fix}", columns - _LEAD - _told_width(columns) - 5)) if fix else []
        rows = _side_by_side(told, right, _told_width(columns))
    else:
        rows = [*told, *(wrapped(f"fix: {fix}", _told_width(columns)) if fix else ())]
    yield f"{verdict} {finding.check:4} {rows[0]}".rstrip()
    for row in rows[1:]:
        yield f"{'':{_LEAD}} {row}".rstrip()
    yield ""


def _told_width(columns: int) -> int:
    room = columns - _LEAD - 1
    return room if columns < NARROW else (room - 3) * 3 // 5


def _side_by_side(left: Sequence[str], right: Sequence[str], columns: int) -> list[str]:
    rows = max(len(left), len(right))
    return [
        f"{padded(left[at] if at < len(left) else '', columns)}   {right[at] if at < len(right) else ''}"
        for at in range(rows)
    ]


def _quiet(report: Report, columns: int) -> Iterator[str]:
    """Checks with nothing to say: the well ones by id, the skipped ones with their reason."""
    spoken = {f.check for f in report.findings if f.verdict in _ORDER}
    well = dict.fromkeys(f.check for f in report.findings if f.verdict is Verdict.OK and f.check not in spoken)
    if well:
        yield from _hanging("OK", " ".join(well), columns)
    reasons: dict[str, list[str]] = {}
    for finding in report.findings:
        if finding.verdict is Verdict.SKIPPED:
            reasons.setdefault(finding.evidence, []).append(finding.check)
    for reason, checks in reasons.items():
        yield from _hanging("SKIPPED", f"{' '.join(dict.fromkeys(checks))}: {escaped(reason)}", columns)


def _hanging(head: str, text: str, columns: int) -> Iterator[str]:
    for at, line in enumerate(wrapped(text, columns - 8)):
        yield f"{head if at == 0 else '':7} {line}"


def _summary(report: Report) -> str:
    counts = {verdict: sum(f.verdict is verdict for f in report.findings) for verdict in Verdict}
    said = [f"{counts[Verdict.FATAL]} fatal"] if counts[Verdict.FATAL] else []
    said += [f"{counts[Verdict.WARN]} warning{'s' * (counts[Verdict.WARN] != 1)}"] if counts[Verdict.WARN] else []
    said = said or ["a clean bill"]
    said += [f"{counts[Verdict.INFO]} to know"] if counts[Verdict.INFO] else []
    return f"{', '.join(said)}; {counts[Verdict.OK]} well, {counts[Verdict.SKIPPED]} skipped"


def _paint(text: str, code: str, *, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
