"""``rlvitals silence``: tell nobody of some alerts for a while, plan maintenance, see and end what is planned."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
from collections.abc import Sequence
from datetime import datetime, timezone

from rlvitals.contract.view import SilencePurpose, SilenceState, SilenceView
from rlvitals.screen import print_report, printable
from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.silences import book
from rlvitals_monitor.silences.book import Span
from rlvitals_monitor.silences.hours import Hours
from rlvitals_monitor.silences.silence import read_matchers
from rlvitals_monitor.store import silences
from rlvitals_monitor.store.engine import Store

SHOWN = 200
_LENGTH = re.compile(r"(\d{1,5})\s*([smhd])")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
EXAMPLES = """examples:
  rlvitals silence add run=math-7b-3 rule='kl_*' --for 2h --why 'known, new data'
  rlvitals silence add 'project=*' --maintenance --from 2027-01-02T08:00+01:00 --until 2027-01-02T12:00+01:00
  rlvitals silence add project=math --maintenance --every '0 22 * * 5' --zone Europe/Berlin --for 4h
"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """What `run` is to do; ends the process where the arguments are wrong, as argparse does."""
    return _parser().parse_args(argv)


def run(store: Store, told: argparse.Namespace, now: datetime) -> int:
    """0: done; 2: what was asked for cannot be read, or is not there."""
    try:
        shown = {"add": _add, "list": _list, "end": _end}[told.action](store, told, now)
    except (ValueError, ServiceError) as error:
        sys.stderr.write(f"rlvitals silence: {error}\n")
        return 2
    return print_report("".join(f"{line(one)}\n" for one in shown), "rlvitals silence", 0)


def line(silence: SilenceView) -> str:
    """One silence for a terminal; what people typed is made harmless."""
    hours = f"  every {silence.cron} {silence.zone} for {silence.lasts_s:g} s" if silence.lasts_s else ""
    until = f"{silence.starts_at:%Y-%m-%d %H:%M} to {silence.ends_at:%Y-%m-%d %H:%M} UTC"
    ended = f", ended by {silence.ended_by}" if silence.ended_by else ""
    why = f": {silence.why}" if silence.why else ""
    words = f"{' '.join(silence.match)}  by {silence.who or 'nobody'}{ended}{why}"
    return f"{silence.id}  {silence.state.value}  {silence.purpose.value}  {until}{hours}  {printable(words)}"


def _add(store: Store, told: argparse.Namespace, now: datetime) -> list[SilenceView]:
    matchers = read_matchers(told.match)
    purpose = SilencePurpose.MAINTENANCE if told.maintenance else SilencePurpose.SILENCE
    with store.begin() as conn:
        made = book.ask(conn, matchers, _span(told), told.by, told.why, now, purpose)
    return [book.view(made, now)]


def _list(store: Store, told: argparse.Namespace, now: datetime) -> list[SilenceView]:
    states = () if told.all else tuple(state for state in SilenceState if state is not SilenceState.ENDED)
    with store.read() as conn:
        found, more = silences.page(conn, now, states=states, limit=SHOWN)
    if more is not None:
        sys.stderr.write(f"the newest {SHOWN} are shown\n")
    if not found:
        sys.stderr.write("there is no silence\n" if told.all else "no silence is in force or planned\n")
    return [book.view(one, now) for one in found]


def _end(store: Store, told: argparse.Namespace, now: datetime) -> list[SilenceView]:
    with store.begin() as conn:
        return [book.view(book.end(conn, told.id, told.by, now), now)]


def _span(told: argparse.Namespace) -> Span:
    lasts_s = None if told.lasts is None else _seconds(told.lasts)
    starts_at, ends_at = _moment(told.starts, "--from"), _moment(told.ends, "--until")
    if not told.every:
        if lasts_s is None and ends_at is None:
            raise ValueError("expected --for or --until")
        return Span(starts_at=starts_at, ends_at=ends_at, lasts_s=lasts_s)
    if lasts_s is None:
        raise ValueError("--every needs --for: how long each time lasts")
    return Span(starts_at=starts_at, ends_at=ends_at, hours=Hours.read(told.every, told.zone, lasts_s))


def _seconds(text: str) -> float:
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"--for: expected a length as 30m, 2h or 1d, got {text!r}")
    return int(found[1]) * _SECONDS[found[2]]


def _moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        # Python 3.10 knows no Z
        at = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        raise ValueError(f"{option}: expected a time as 2027-01-02T08:00+01:00, got {text!r}") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals silence",
        description="Alerts of which nobody is told for a while. They stand on the pages as ever.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True)
    add = actions.add_parser("add", help="tell nobody of the alerts that fit every FIELD=PATTERN")
    add.add_argument("match", nargs="+", metavar="FIELD=PATTERN", help="or FIELD!=PATTERN; see docs/notify.md")
    add.add_argument("--for", dest="lasts", metavar="LENGTH", help="30m, 2h, 1d; with --every of each time")
    add.add_argument("--from", dest="starts", metavar="TIME", help="by default now; UTC unless it says otherwise")
    add.add_argument("--until", dest="ends", metavar="TIME")
    add.add_argument("--every", metavar="CRON", help="come again: minute, hour, day, month, day of week")
    add.add_argument("--zone", default="UTC", help="whose clock --every means (default: UTC)")
    add.add_argument("--maintenance", action="store_true", help="note it as planned work")
    add.add_argument("--why", default="", help="for those who wonder")
    shown = actions.add_parser("list", help="what is in force or planned")
    shown.add_argument("--all", action="store_true", help="also what is over")
    end = actions.add_parser("end", help="end one before its time")
    end.add_argument("id")
    for action in (add, end):
        action.add_argument("--by", default=_user(), help="your name in the audit (default: %(default)s)")
    return parser


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "somebody"
