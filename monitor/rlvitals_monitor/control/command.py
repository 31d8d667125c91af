"""``rlvitals control …``; here ``dry-run RUN``: what a KL policy would have decided over a past run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from rlvitals.screen import print_report, printable
from rlvitals_monitor.alerts.replay import Step
from rlvitals_monitor.alerts.settings import RuleSettings
from rlvitals_monitor.control import audit_command, policy_command, steer_command
from rlvitals_monitor.control.bounds import Limits
from rlvitals_monitor.control.dry_run import dry_run
from rlvitals_monitor.control.kl_decision import KlDecision, KlSettings
from rlvitals_monitor.control.kl_policies import POLICIES, KlPolicy
from rlvitals_monitor.errors import ServiceError
from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.runs import find_attempt
from rlvitals_monitor.store.series import every_step, read_config

CAVEAT = "The signals are the recorded ones: what a change would have done to them is not known."


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Every decision, in order, and the settings they were made with."""

    policy: KlPolicy
    settings: KlSettings
    decisions: tuple[KlDecision, ...]

    def to_dict(self) -> dict[str, object]:
        """JSON-safe."""
        return {
            "policy": self.policy.name,
            "warning": self.policy.warning,
            "caveat": CAVEAT,
            "target": self.settings.target,
            "steps": len(self.decisions),
            "decisions": [
                {"step": d.step, "action": "hold" if d.holds else "set", "value": d.value, "why": d.why.value}
                | {"reason": d.reason}
                for d in self.decisions
            ],
        }


def main(argv: Sequence[str]) -> int:
    """0: done; 1: the audit's chain is broken; 2: what was named could not be read, or is not there."""
    told = _parser().parse_args(argv)
    act: Callable[[argparse.Namespace], int] = told.act
    return act(told)


def _try(told: argparse.Namespace) -> int:
    """2 where the run, the rules or the arguments could not be read, or the run holds no step."""
    try:
        report = rehearse(told)
    except (OSError, LookupError, ValueError, ServiceError, RuleFileError) as error:
        sys.stderr.write(f"rlvitals control: {error}\n")
        return 2
    if not report.decisions:
        sys.stderr.write(f"rlvitals control: no training step was found in {told.run}\n")
        return 2
    text = json.dumps(report.to_dict(), indent=2) + "\n" if told.json else table(report)
    return print_report(text, "rlvitals control", 0)


def rehearse(told: argparse.Namespace) -> Report:
    """Raises OSError, ValueError, RuleFileError or NotFound."""
    rules = load_rules(told.rules) if told.rules else RuleSettings().load()
    path = Path(told.run)
    if path.exists():
        settings = KlSettings(users=told.coefficient, target=told.target)
        return _report(POLICIES[told.policy], read_past_run(path).steps, settings, rules, {})
    store = Store(Settings().store_url)
    try:
        if not store.is_current():
            raise LookupError(f"there is no log {told.run}, and no store of runs at {store.engine.url!r}")
        return _stored(store, told, rules)
    finally:
        store.close()


def _stored(store: Store, told: argparse.Namespace, rules: Sequence[Rule]) -> Report:
    with store.read() as connection:
        number, _ = find_attempt(connection, told.run, told.attempt)
        config = dict(read_config(connection, told.run))
    given = {"kl_coef": told.coefficient, "kl_target": told.target}
    config |= {name: value for name, value in given.items() if value is not None}
    settings = KlSettings.of(config, Limits())
    return _report(POLICIES[told.policy], every_step(store, number), settings, rules, config)


def _report(
    policy: KlPolicy,
    steps: Iterator[Step],
    settings: KlSettings,
    rules: Sequence[Rule],
    config: dict[str, object],
) -> Report:
    if settings.target is not None:
        config = {**config, "kl_target": settings.target}
    decisions = tuple(dry_run(policy, steps, settings, rules=rules, config=config))
    return Report(policy=policy, settings=settings, decisions=decisions)


def table(report: Report) -> str:
    """What a person reads: each change, and each stretch of holding for one reason."""
    policy, changes = report.policy, [d for d in report.decisions if not d.holds]
    out = [f"{policy.name}: {policy.says}"]
    if policy.warning:
        out.append(f"WARNING: {policy.warning}. The recommended policy is `guarded`.")
    out += ["", f"{'steps':>15}  {'decision':22} why"]
    for why, run in groupby(report.decisions, key=lambda d: (d.why, d.holds)):
        rows = list(run)
        if why[1]:
            out.append(_row(rows, f"hold ({why[0].value})"))
        else:
            out += [_row([row], f"{row.why.value} to {row.value:.4g}") for row in rows]
    out += ["", f"steps: {len(report.decisions)}, changes: {len(changes)}. {CAVEAT}"]
    return "\n".join(out) + "\n"


def _row(rows: Sequence[KlDecision], what: str) -> str:
    first, last = rows[0].step, rows[-1].step
    steps = f"{first}" if first == last else f"{first}–{last}"
    return f"{steps:>15}  {what:22} {printable(rows[-1].reason)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rlvitals control", description="Steering of runs.")
    actions = parser.add_subparsers(dest="action", required=True)
    trying = actions.add_parser(
        "dry-run",
        help="what a KL policy would have decided over a past run",
        description=CAVEAT,
        epilog="Policies: " + "; ".join(f"{p.name} {p.says}" for p in POLICIES.values()) + ".",
    )
    trying.add_argument("run", help="a log file, or a stored run's id")
    trying.add_argument("--policy", choices=list(POLICIES), default="guarded")
    trying.add_argument("--target", type=float, help="KL per token in nats; by default the stored run's own")
    trying.add_argument("--coefficient", type=float, help="the user's own; by default the run's first")
    trying.add_argument("--attempt", default=None, help="of a stored run; by default the newest")
    trying.add_argument("--rules", action="append", type=Path, default=[], help="own rule files; repeatable")
    trying.add_argument("--json", action="store_true", help="print every decision as JSON")
    trying.set_defaults(act=_try)
    policy_command.add(actions)
    steer_command.add(actions)
    audit_command.add(actions)
    return parser
