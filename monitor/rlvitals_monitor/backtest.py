"""``rlvitals rules check | test | backtest | list``: the live engine, over files and stored runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rlvitals_monitor.alerts.replay import Episode, Step, episodes, replay
from rlvitals_monitor.alerts.scenario import run_files
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import check, load_rules
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.series import read_config, read_steps

STEPS_A_READ = 1_000


def backtest(store: Store, run: str, rules: Sequence[Rule], attempt: str | None = None) -> list[Episode]:
    """What these rules would have said about a stored run. Raises `NotFound`; writes nothing."""
    with store.read() as connection:
        number, _ = find_attempt(connection, run, attempt)
        config = read_config(connection, run)

    def steps() -> Iterator[Step]:
        last: int | None = None
        while True:
            with store.read() as connection:
                rows = read_steps(connection, number, last, STEPS_A_READ)
            yield from ((row.step, row.time, row.values) for row in rows)
            if len(rows) < STEPS_A_READ:
                return
            last = rows[-1].step

    return episodes(replay(rules, steps(), config))


def main(argv: Sequence[str]) -> int:
    """0: all is well; 1: a problem was found; 2: the arguments make no sense."""
    told = _parser().parse_args(argv)
    try:
        return int(told.run(told))
    except RuleFileError as error:
        sys.stderr.write(f"{error}\n")
    except (OSError, LookupError, ValueError, ServiceError) as error:
        sys.stderr.write(f"rlvitals rules: {error}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlvitals rules", description="Check, test and back-test alert rules.")
    actions = parser.add_subparsers(dest="action", required=True)
    checking = actions.add_parser("check", help="load rule files strictly and print every problem")
    checking.add_argument("files", nargs="*", type=Path, help="by default the catalogue and RLVITALS_RULES")
    checking.set_defaults(run=_check)
    testing = actions.add_parser("test", help="run scenario files: series in, alerts expected at steps")
    testing.add_argument("files", nargs="+", type=Path)
    testing.add_argument("--rules", action="append", type=Path, default=[], help="own rule files; repeatable")
    testing.set_defaults(run=_test)
    looking = actions.add_parser("backtest", help="what the rules would have said about a stored run")
    looking.add_argument("name", metavar="run")
    looking.add_argument("--attempt", default=None)
    looking.add_argument("--rules", action="append", type=Path, default=[], help="own rule files; repeatable")
    looking.set_defaults(run=_backtest)
    listing = actions.add_parser("list", help="the rules in force")
    listing.set_defaults(run=_list)
    return parser


def _check(told: argparse.Namespace) -> int:
    files = told.files or RuleSettings().rules
    problems = check(files)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    if not problems:
        sys.stdout.write(f"{len(load_rules(files))} rules are sound\n")
    return 1 if problems else 0


def _test(told: argparse.Namespace) -> int:
    count, problems = run_files(told.files, load_rules(told.rules))
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    sys.stdout.write(f"{count} scenarios, {len(problems)} differences\n")
    return 1 if problems else 0


def _backtest(told: argparse.Namespace) -> int:
    rules = load_rules(told.rules) if told.rules else RuleSettings().load()
    store = Store(Settings().store_url)
    try:
        found = backtest(store, told.name, rules, told.attempt)
    finally:
        store.close()
    for episode in found:
        sys.stdout.write(f"{_line(episode)}\n")
    sys.stdout.write(f"{len(found)} alerts would have fired\n")
    return 0


def _list(told: argparse.Namespace) -> int:
    for rule in RuleSettings().load():
        sys.stdout.write(f"{rule.severity.value:<9}{rule.alert:<24}{rule.expr.text}\n")
    return 0


def _line(episode: Episode) -> str:
    end = "open" if episode.resolved is None else f"resolved at {episode.resolved}"
    evaluation = episode.judgement.evaluation
    value = "" if evaluation.value is None else f"  {evaluation.metric} = {evaluation.value:.4g}"
    limit = "" if evaluation.threshold is None else f" (threshold {evaluation.threshold:.4g})"
    return f"step {episode.fired:<8}{episode.severity.value:<9}{episode.alert:<24}{end}{value}{limit}"
