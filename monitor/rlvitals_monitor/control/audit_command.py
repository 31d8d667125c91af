"""``rlvitals control audit``: who did what, as a table or a file, and whether anybody changed it afterwards."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from rlvitals.contract.view import AuditView
from rlvitals.screen import print_report, printable
from rlvitals_monitor.control.export import FORMATS
from rlvitals_monitor.control.local_store import on_store
from rlvitals_monitor.store.audit import Filter, every_line, verify
from rlvitals_monitor.store.engine import Store


def add(actions: Any) -> None:
    about = "who did what: commands, approvals, silences, policies, tokens"
    asked = actions.add_parser("audit", help=about, description=about + "; oldest first.")
    asked.add_argument("--run", default="", help="only what concerns this run")
    asked.add_argument("--who", default="", help="only what this person, rule or service did")
    asked.add_argument("--what", default="", help="only this, such as approved")
    form = asked.add_mutually_exclusive_group()
    form.add_argument("--jsonl", action="store_const", const="jsonl", dest="form", help="JSON lines")
    form.add_argument("--csv", action="store_const", const="csv", dest="form")
    form.add_argument(
        "--verify", action="store_true", help="walk the whole chain of digests; 1 where it is broken"
    )
    asked.add_argument("--head", default="", metavar="DIGEST", help="with --verify: a last digest noted earlier")
    asked.set_defaults(act=_act)


def _act(told: argparse.Namespace) -> int:
    if told.verify:
        return on_store(lambda store: _verify(store, told.head))
    wanted = Filter(run=told.run, who=told.who, what=told.what)
    return on_store(lambda store: _print(every_line(store, wanted), told.form, wanted))


def _verify(store: Store, head: str) -> int:
    with store.read() as conn:
        found = verify(conn, head)
    old = f", {found.unchained} of them older than the chain" if found.unchained else ""
    if found.fault:
        where = "" if found.number is None else f"line {found.number}: "
        sys.stderr.write(f"rlvitals control: BROKEN, {where}{found.fault}\n")
        return 1
    return print_report(f"the chain holds: {found.lines} lines{old}\nhead {found.head}\n", "rlvitals control", 0)


def _print(pages: Iterable[tuple[AuditView, ...]], form: str | None, wanted: Filter) -> int:
    """Page by page, so that a long audit is never in memory. That there is none is said beside the output."""
    found = False
    writer = FORMATS[form]() if form else None
    status = print_report(writer.head(), "rlvitals control", 0) if writer is not None else 0
    for lines in pages:
        found = found or bool(lines)
        text = writer.lines(lines) if writer is not None else "".join(_row(line) for line in lines)
        status = status or print_report(text, "rlvitals control", 0)
        if status:
            return status
    if not found:
        sys.stderr.write(f"rlvitals control: the audit has no line{_of(wanted)}\n")
    return status


def _of(wanted: Filter) -> str:
    asked = {"run": wanted.run, "who": wanted.who, "what": wanted.what}
    said = ", ".join(f"{name} {printable(value)!r}" for name, value in asked.items() if value)
    return f" with {said}" if said else " yet"


def _row(line: AuditView) -> str:
    cells = (line.run or "-", line.who, line.what, line.detail)
    return f"{line.at:%Y-%m-%d %H:%M:%S}  " + "  ".join(printable(cell) for cell in cells) + "\n"
