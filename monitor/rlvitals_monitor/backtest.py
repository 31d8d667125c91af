"""``rlvitals rules check | test | backtest | learn | list``: the live engine, over files and stored runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlvitals_monitor.alerts.replay import Episode, Step, episodes, replay
from rlvitals_monitor.alerts.scenario import run_files
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.bands import learn_bands, write_rules
from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import check, load_rules
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.series import every_step, read_config
from rlvitals_monitor.trials import Difference, Record, Trial, compare, keep_record


def backtest(store: Store, run: str, rules: Sequence[Rule], attempt: str | None = None) -> list[Episode]:
    """What these rules would have said about a stored run. Raises `NotFound`; writes nothing."""
    return list(try_stored(store, Chosen(name=run, attempt=attempt), rules).episodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A past run to try rules on: a stored one's id, or a log's path; ``since`` is its first bad step."""

    name: str
    attempt: str | None = None
    bad: bool = False
    since: int | None = None


def try_stored(store: Store, chosen: Chosen, rules: Sequence[Rule]) -> Trial:
    """A stored run under these rules. Raises `NotFound`; writes nothing."""
    with store.read() as connection:
        number, _ = find_attempt(connection, chosen.name, chosen.attempt)
        config = read_config(connection, chosen.name)
    return _tried(chosen, rules, every_step(store, number), config)


def try_log(path: Path, chosen: Chosen, rules: Sequence[Rule]) -> Trial:
    """A log under these rules, as if its run were stored. Raises as `read_past_run` does."""
    past = read_past_run(path)
    return _tried(chosen, rules, past.steps, {})


def _tried(chosen: Chosen, rules: Sequence[Rule], steps: Iterator[Step], config: Mapping[str, object]) -> Trial:
    seen: list[int] = [0, 0]

    def counted() -> Iterator[Step]:
        for step in steps:
            seen[0], seen[1] = seen[0] + 1, seen[1] if seen[0] else step[0]
            yield step

    found = tuple(episodes(replay(rules, counted(), config)))
    return Trial(run=chosen.name, steps=seen[0], episodes=found, bad=chosen.bad, since=chosen.since, first=seen[1])


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
    looking = actions.add_parser(
        "backtest", help="what the rules would have said about past runs, and how precisely"
    )
    looking.add_argument("names", metavar="run", nargs="+", help="a stored run's id, or a log file")
    looking.add_argument("--attempt", default=None, help="of a single stored run; by default the newest")
    looking.add_argument(
        "--bad", action="append", default=[], metavar="RUN[@STEP]", help="which of them went bad, and from where"
    )
    looking.add_argument("--rules", action="append", type=Path, default=[], help="own rule files; repeatable")
    looking.add_argument(
        "--against", action="append", type=Path, default=[], help="rule files to compare with; repeatable"
    )
    looking.set_defaults(run=_backtest)
    learning = actions.add_parser("learn", help="bands from healthy past runs, as a rule file on standard output")
    learning.add_argument("names", metavar="run", nargs="+", help="a stored run's id, or a log file; two or more")
    learning.set_defaults(run=_learn)
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
    others = load_rules(told.against) if told.against else None
    chosen = _chosen(told)
    store = Store(Settings().store_url)
    try:
        trials = [_try(store, one, rules) for one in chosen]
        against = [_try(store, one, others) for one in chosen] if others is not None else None
    finally:
        store.close()
    for trial in trials:
        if len(trials) > 1:
            sys.stdout.write(f"{trial.run}: {trial.steps} steps{', went bad' if trial.bad else ''}\n")
        for episode in trial.episodes:
            sys.stdout.write(f"{_line(episode)}\n")
    sys.stdout.write(f"{sum(len(trial.episodes) for trial in trials)} alerts would have fired\n")
    if len(trials) > 1 or told.bad:
        sys.stdout.write(_record(keep_record(trials)))
    if against is not None:
        sys.stdout.write(_differences(compare(trials, against)))
    return 0


def _chosen(told: argparse.Namespace) -> list[Chosen]:
    """Raises ValueError where a run is called bad that is not among those chosen."""
    bad: dict[str, int | None] = {}
    for text in told.bad:
        name, at, step = text.rpartition("@")
        known = name if at and step.isdecimal() else text
        bad[known] = int(step) if known is name else None
    unknown = sorted(set(bad) - set(told.names))
    if unknown:
        raise ValueError(f"--bad: expected one of {', '.join(told.names)}, got {', '.join(unknown)}")
    return [Chosen(name=n, attempt=told.attempt, bad=n in bad, since=bad.get(n)) for n in told.names]


def _try(store: Store, chosen: Chosen, rules: Sequence[Rule]) -> Trial:
    path = Path(chosen.name)
    return try_log(path, chosen, rules) if path.is_file() else try_stored(store, chosen, rules)


def _record(record: Record) -> str:
    lines = [f"\n{'rule':32}{'fired':>7}{'right':>7}{'precision':>11}"]
    lines += [
        f"{f'{rule.alert}/{rule.severity.value}':32}{rule.fired:>7}{rule.right:>7}{rule.precision:>11.0%}"
        for rule in record.rules
    ]
    named = record.bad_runs - len(record.quiet)
    lines.append(f"bad runs named: {named} of {record.bad_runs}{_quiet(record.quiet)}")
    lines.append(
        f"false alarms: {record.false} on {record.healthy_steps:,} healthy steps, "
        f"{record.false_per_thousand:.2f} per 1,000"
    )
    return "\n".join(lines) + "\n"


def _quiet(runs: Sequence[str]) -> str:
    return f" (quiet on {', '.join(runs)})" if runs else ""


def _differences(found: Sequence[Difference]) -> str:
    lines = [f"\n{len(found)} differences to the other rules:"]
    for one in found:
        lines.append(
            f"  {one.run}: {one.severity.value} {one.alert}: {_at(one.ours)} here, {_at(one.theirs)} there"
        )
    return "\n".join(lines) + "\n"


def _at(steps: Sequence[int], most: int = 5) -> str:
    shown = ", ".join(map(str, steps[:most])) + (f" and {len(steps) - most} more" if len(steps) > most else "")
    return f"step {shown}" if steps else "quiet"


def _learn(told: argparse.Namespace) -> int:
    store = Store(Settings().store_url)
    try:
        runs = {name: [values for _, _, values in _steps_of(store, name)] for name in told.names}
    finally:
        store.close()
    sys.stdout.write(write_rules(learn_bands(runs), list(runs)))
    return 0


def _steps_of(store: Store, name: str) -> Iterator[Step]:
    if Path(name).exists():
        return read_past_run(Path(name)).steps
    with store.read() as connection:
        number, _ = find_attempt(connection, name)
    return every_step(store, number)


def _list(told: argparse.Namespace) -> int:
    for rule in RuleSettings().load():
        sys.stdout.write(f"{rule.severity.value:<9}{rule.alert:<24}{rule.expr.text}\n")
    return 0


def _line(episode: Episode) -> str:
    end = "open" if episode.resolved is None else f"resolved at {episode.resolved}"
    told = episode.judgement.evaluation.told
    value = f"  {told}" if told else ""
    return f"step {episode.fired:<8}{episode.severity.value:<9}{episode.alert:<24}{end}{value}"
