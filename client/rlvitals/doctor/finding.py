"""What the doctor found, one line each, and how it is written for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract import codec
from rlvitals.contract.hooks import HookTableView
from rlvitals.screen import printable


class State(str, Enum):
    """``note`` is worth knowing and no fault; only ``wrong`` makes the exit status 1."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``told`` in words, ``fix`` what to do, ``rows`` what stands below it, ``table`` the hooks it speaks of."""

    section: str
    state: State
    told: str
    fix: str = ""
    rows: tuple[str, ...] = ()
    table: HookTableView | None = field(default=None)


def exit_status(findings: Sequence[Finding]) -> int:
    return int(any(finding.state is State.WRONG for finding in findings))


def as_text(findings: Sequence[Finding], head: str) -> str:
    """One block a section; nothing of what others wrote can steer the terminal."""
    lines = [head]
    section = ""
    for finding in findings:
        if finding.section != section:
            section = finding.section
            lines += ["", section]
        mark = finding.state.value.upper() if finding.state is State.WRONG else finding.state.value
        lines.append(f"  {mark:5} {printable(finding.told)}")
        if finding.fix:
            lines.append(f"        what to do: {printable(finding.fix)}")
        lines += [f"        {printable(row)}" for row in finding.rows]
    wrong = sum(finding.state is State.WRONG for finding in findings)
    lines += ["", f"{wrong} thing{'' if wrong == 1 else 's'} wrong" if wrong else "all well"]
    return "\n".join(lines) + "\n"


def as_json(findings: Sequence[Finding], version: str) -> str:
    """One object; all text is ASCII with escapes."""
    told = [
        {
            "section": f.section,
            "state": f.state.value,
            "told": f.told,
            "fix": f.fix,
            "rows": list(f.rows),
            "hooks": None if f.table is None else codec.encode(f.table),
        }
        for f in findings
    ]
    whole = {"rlvitals": version, "exit_code": exit_status(findings), "findings": told}
    return json.dumps(whole, indent=2) + "\n"
