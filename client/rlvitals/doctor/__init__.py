"""``rlvitals doctor``: in a job's environment, whether a run there would be seen; of a run, what its hooks see."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlvitals import __version__, settings
from rlvitals.doctor.finding import Finding, State, as_json, as_text, exit_status
from rlvitals.doctor.journals import examine_run
from rlvitals.doctor.service import examine_service
from rlvitals.doctor.trainers import examine_trainers
from rlvitals.screen import print_report
from rlvitals.settings import Settings
from rlvitals.spool import Lock, journals, network_file_system, read_acked, segments

EPILOG = """\
examples:
  rlvitals doctor             settings, spool, service, and what the installed trainer's hooks would find
  rlvitals doctor my-run      what the hooks of that run see, from its journal on this machine
  rlvitals doctor --json      the same for a program

exit status: 0 all well, 1 something is wrong, 2 wrong arguments."""


def main(argv: Sequence[str]) -> int:
    """Examines and prints; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="rlvitals doctor",
        description="Says whether a training job in this environment would be seen, and if not, why.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", nargs="?", help="a run's id, or the folder of its journal: what its hooks see")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    parsed = parser.parse_args(list(argv))
    chosen = settings.load()
    findings = list(examine_run(chosen.spool, parsed.run) if parsed.run else examine(chosen))
    status = exit_status(findings)
    head = f"rlvitals {__version__}, Python {sys.version.split()[0]}"
    text = as_json(findings, __version__) if parsed.json else as_text(findings, head)
    return print_report(text, "rlvitals doctor", status)


def examine(chosen: Settings) -> Iterator[Finding]:
    """All that can be said of this environment."""
    yield from examine_settings(chosen)
    yield from examine_service(chosen)
    yield from examine_trainers(os.environ)


def examine_settings(chosen: Settings) -> Iterator[Finding]:
    """Where the client would send to and what its spool holds; no secret."""
    token = "with" if chosen.token else "without"
    yield Finding(
        section="settings",
        state=State.OK,
        told=f"service {chosen.url} ({token} a token), mode {chosen.mode.value}, project {chosen.project}",
    )
    network = network_file_system(chosen.spool, settings.mounts())
    where = f"spool {chosen.spool}{f' (on a network file system: {network})' if network else ''}"
    kept = tuple(_state(folder) for folder in journals(chosen.spool))
    if not _is_writable(chosen.spool):
        fix = "set RLVITALS_DIR to a folder of yours on a local disk"
        yield Finding(section="settings", state=State.WRONG, told=f"{where} can't be written", fix=fix, rows=kept)
        return
    yield Finding(section="settings", state=State.NOTE if network else State.OK, told=where, rows=kept)


def _is_writable(spool: Path) -> bool:
    nearest = next((path for path in (spool, *spool.parents) if path.exists()), spool)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _state(folder: Path) -> str:
    acked, kept = read_acked(folder), segments(folder)
    size_kb = sum(s.size for s in kept) / 1024
    lock = Lock.take(folder)
    if lock is not None:
        lock.release()
    state = "being written" if lock is None else "all stored" if acked.complete else "waits for `rlvitals sync`"
    name = f"{folder.parent.name}/{folder.name}"
    return f"{name}: {size_kb:.0f} KiB, {len(kept)} segments, stored through {acked.stored_through}, {state}"
