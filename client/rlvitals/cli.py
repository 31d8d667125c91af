"""The command ``rlvitals``. Commands of other packages join by the entry-point group ``rlvitals.commands``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from rlvitals import __version__, settings
from rlvitals.contract.report import Heartbeat
from rlvitals.control import Control
from rlvitals.drops import Drops
from rlvitals.sender import Sender
from rlvitals.settings import Mode, Settings

GROUP = "rlvitals.commands"
EXTRA_OF = dict.fromkeys(
    (
        *("serve", "rules", "replay", "db", "notify", "silence", "control"),
        *("token", "user", "share", "login-link"),
        *("backup", "restore"),
    ),
    "server",
) | {"mcp": "mcp"}
"""Commands that an extra brings, so that a missing one can be told by name."""
ABOUT = {
    "serve": "the service and its dashboard",
    "check": "check tokenizer, data and settings before the first step",
    "doctor": "say whether a job here would be seen, and why not",
    "launch": "start OpenRLHF's own command line, watched",
    "tail": "follow a trainer's own logs; no code in the job",
    "replay": "what would have rung over a log, and why",
    "rules": "list, check, test, back-test and learn alert rules",
    "control": "who may steer and who did; KL policies, also over a past run",
    "notify": "list the channels, or send a test message to one",
    "silence": "tell nobody of some alerts for a while; maintenance",
    "token": "create, list, rotate and revoke access tokens",
    "user": "add people by an invitation, give them roles, disable them",
    "share": "make a link that shows one run for a while",
    "login-link": "make another link that signs the owner in, once",
    "db": "the database: migrate, check, move, vacuum",
    "backup": "all that the service knows into one file, while it goes on",
    "restore": "put a backup in its place",
    "mcp": "for coding agents: they read runs, and ask for commands where you allow it",
}
"""What the help says of each command, in this order; `sync` is this module's own."""
INTERRUPTED = 130
"""As a shell tells a command that Ctrl-C ended."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit code (2: no such command or wrong arguments, 130: interrupted)."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    joined = {point.name: point for point in entry_points(group=GROUP)}
    command = arguments[0] if arguments else ""
    if command in joined or command in EXTRA_OF:
        return _run_joined(command, joined.get(command), arguments[1:])
    if command == "check":
        return _check(arguments[1:])
    if command == "doctor":
        return _doctor(arguments[1:])
    parsed = _parser(joined).parse_args(arguments)
    if parsed.command is None:
        _parser(joined).print_help()
        return 2
    return int(parsed.run(parsed))


def sync(folder: Path, chosen: Settings) -> int:
    """Uploads what dead or finished writers left in a spool. 0 if nothing is left."""
    drops = Drops()
    sender = Sender(
        replace(chosen, spool=folder, mode=Mode.ONLINE),
        Control(journal_command=lambda command, step: None, journal_outcome=lambda outcome: None),
        drops,
        heartbeat=lambda: Heartbeat(time_s=0.0),
    )
    sent, left = sender.sync()
    print(f"{sent} journals sent to {chosen.url}, {left} left")
    for reason, count in drops.reasons.items():
        print(f"  {count} records lost: {reason}")
    if left:
        print(f"  {sender.last_error}", file=sys.stderr)
    return 1 if left else 0


def _run_joined(command: str, point: EntryPoint | None, arguments: list[str]) -> int:
    extra = EXTRA_OF.get(command, "server")
    try:
        if point is None:
            raise ModuleNotFoundError(f"no package provides `rlvitals {command}`")
        call: Callable[[list[str]], int | None] = point.load()
    except ModuleNotFoundError as error:
        print(f"rlvitals {command}: {error}. Install it with: pip install 'rlvitals[{extra}]'", file=sys.stderr)
        return 2
    return int(call(arguments) or 0)


def _check(arguments: list[str]) -> int:
    """Loaded only here: every other command starts without it."""
    try:
        from rlvitals.preflight.command import main as run
    except ModuleNotFoundError as error:
        print(f"rlvitals check: {error}. Install it with: pip install 'rlvitals[check]'", file=sys.stderr)
        return 2
    return run(arguments)


def _doctor(arguments: list[str]) -> int:
    """Loaded only here: every other command starts without it."""
    from rlvitals.doctor import main as run

    return run(arguments)


class _Wide(argparse.HelpFormatter):
    """Also the longest command has its words on its own line."""

    def add_arguments(self, actions: Iterable[argparse.Action]) -> None:
        super().add_arguments(actions)
        self._action_max_length += self._indent_increment


def _parser(joined: dict[str, EntryPoint]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rlvitals",
        description="The vital-signs monitor for RL post-training of language models.",
        epilog="Each command has its own --help.",
        formatter_class=_Wide,
    )
    parser.add_argument("--version", action="version", version=f"rlvitals {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    there = {"check", "doctor", *joined, *EXTRA_OF}
    for name in [*(name for name in ABOUT if name in there), *sorted(joined.keys() - ABOUT.keys())]:
        commands.add_parser(name, help=ABOUT.get(name, "joined by another package"), add_help=False)
    uploading = commands.add_parser("sync", help="upload what is left in the spool")
    uploading.add_argument("folder", nargs="?", type=Path, help="the spool (default: the client's own)")
    uploading.add_argument("--url", help="the service (default: as the client finds it)")
    uploading.set_defaults(run=_sync)
    return parser


def _sync(parsed: argparse.Namespace) -> int:
    fault = _sync_fault(parsed)
    if fault:
        print(f"rlvitals sync: {fault}", file=sys.stderr)
        return 2
    chosen = settings.load(url=parsed.url)
    return sync(parsed.folder or chosen.spool, chosen)


def _sync_fault(parsed: argparse.Namespace) -> str:
    """What a person named and is not there; a journal never goes to another service than the named one."""
    if parsed.url is not None and not settings.is_url(parsed.url):
        return f"--url: expected http(s)://…, got {parsed.url!r}"
    if parsed.folder is not None and not parsed.folder.is_dir():
        return f"{parsed.folder}: expected the folder of a spool"
    return ""


if __name__ == "__main__":
    sys.exit(main())
