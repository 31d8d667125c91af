"""Rule files to rules, strictly: every problem is reported with its file, its line and what was expected."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from rlvitals.contract.alert import Severity
from rlvitals.contract.command import ARGUMENT_KINDS, CommandKind
from rlvitals.contract.metrics import BY_NAME
from rlvitals_monitor.rules.document import Item, RuleFileError, read_document
from rlvitals_monitor.rules.expression import ExpressionError, nearest, parse
from rlvitals_monitor.rules.functions import Kind
from rlvitals_monitor.rules.program import Program, compile_node
from rlvitals_monitor.rules.rule import (
    MOST_OF,
    MOST_WARMUP,
    ONE_STEP,
    PLACEHOLDERS,
    Action,
    Duration,
    Rule,
    placeholders,
)

CATALOGUE = Path(__file__).parent / "catalogue"
EDITED = "edited"
"""What a document that is no file is called where its lines are named."""
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
METRIC_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

_FILE_KEYS = ("groups", "metrics", "off")
_RULE_KEYS = (
    "alert",
    "expr",
    "for",
    "of",
    "keep_firing_for",
    "clear",
    "warmup",
    "needs",
    "labels",
    "annotations",
    "runbook",
    "inhibited_by",
    "action",
)


def load_text(text: str, file: str = "rules.yaml") -> tuple[Rule, ...]:
    """The rules of one document. Raises `RuleFileError` with all of its problems."""
    return _File(text, file).rules


def load_rules(paths: Iterable[Path] = (), edited: str = "") -> tuple[Rule, ...]:
    """The shipped catalogue with the user's files on top, and the ``edited`` document over them all.

    A user's rule of the same alert and severity takes the shipped one's place; ``off: [alert]`` takes rules away.
    """
    files = [*_shipped(), *(_File(_read(path), str(path)) for path in paths)]
    return _layered([*files, _File(edited, EDITED)] if edited.strip() else files)


def load_over(text: str, file: str = "rules.yaml") -> tuple[Rule, ...]:
    """The shipped catalogue with one document on top, as `load_rules`."""
    return _layered([*_shipped(), _File(text, file)])


def _layered(files: Sequence[_File]) -> tuple[Rule, ...]:
    rules: dict[str, Rule] = {}
    for file in files:
        for name in file.off:
            rules = {key: rule for key, rule in rules.items() if rule.alert != name}
        rules.update({rule.key: rule for rule in file.rules})
    found = tuple(sorted(rules.values(), key=lambda rule: (rule.group, rule.alert, -rule.severity.rank)))
    alerts = {rule.alert for file in files for rule in file.rules}
    _check_names(found, alerts, {name: where for file in files for name, where in file.off.items()})
    return found


def check(paths: Iterable[Path]) -> list[str]:
    """All problems of these files, as "file:line: expected …"; empty when they can be loaded."""
    paths = list(paths)
    problems: list[str] = []
    for path in paths:
        try:
            _File(_read(path), str(path))
        except RuleFileError as error:
            problems += error.problems
    if not problems:
        try:
            load_rules(paths)
        except RuleFileError as error:
            problems += error.problems
    return problems


def catalogue_table() -> str:
    """docs/rules.md: every shipped rule with its threshold and the reason for it."""
    lines = ["# Rules\n\nThe shipped catalogue. `of` counts observed steps; a missing value is no observation.\n"]
    groups: dict[str, list[Rule]] = {}
    for rule in load_rules():
        groups.setdefault(rule.group, []).append(rule)
    for group, rules in groups.items():
        lines.append(f"\n## {group}\n\n| alert | severity | fires when | clears when | why this number |\n")
        lines.append("|---|---|---|---|---|\n")
        lines += [_row(rule) for rule in rules]
    return "".join(lines)


def _row(rule: Rule) -> str:
    when = [f"`{_plain(rule.expr.text)}`"]
    if rule.of != (1, 1):
        when.append(f"on {rule.of[0]} of {rule.of[1]} steps")
    if rule.hold != ONE_STEP:
        when.append(f"for {rule.hold}")
    if rule.warmup:
        when.append(f"after {rule.warmup} steps")
    if rule.inhibited_by:
        when.append(f"not while {' or '.join(rule.inhibited_by)} fires")
    clears = f"`{_plain(rule.clear.text)}`" if rule.clear is not None else "it no longer holds"
    if rule.keep_firing_for != ONE_STEP:
        clears += f" for {rule.keep_firing_for}"
    link = f"[{rule.alert}](runbooks/{rule.alert}.md)"
    cells = (link, rule.severity.value, ", ".join(when), clears, f"{rule.summary} {rule.reason}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _plain(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") and _balanced(text[1:-1]) else text


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


@cache
def _shipped() -> tuple[_File, ...]:
    return tuple(_File(_read(path), path.name) for path in sorted(CATALOGUE.glob("*.yaml")))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleFileError([f"{path}:1: expected a readable UTF-8 file: {error}"]) from None


def _check_names(rules: Collection[Rule], alerts: Collection[str], off: Mapping[str, str]) -> None:
    """``alerts`` are those that any file defines: one that is off is still known. ``off``: name → where."""
    problems = [
        f"{where}: expected the name of an alert in off, got {name!r}{nearest(name, alerts)}"
        for name, where in off.items()
        if name not in alerts
    ]
    problems += [
        f"{rule.where}: expected the name of an alert in unless or inhibited_by, got {name!r}"
        f"{nearest(name, alerts)}"
        for rule in rules
        for name in (*rule.inhibited_by, *(rule.action.unless if rule.action is not None else ()))
        if name not in alerts
    ]
    if problems:
        raise RuleFileError(problems)


class _File:
    """One rule file. ``metrics`` declares names of the user's own that expressions may read."""

    def __init__(self, text: str, file: str) -> None:
        self.problems: list[str] = []
        entries = read_document(text, file).mapping(_FILE_KEYS)
        self.own = [self._metric_name(item) for item in _list(entries.get("metrics"))]
        self.off = {item.text(): item.where for item in _list(entries.get("off"))}
        rules = [rule for group in _list(entries.get("groups")) for rule in self._group(group)]
        self._no_twins(rules)
        if self.problems:
            raise RuleFileError(self.problems)
        self.rules = tuple(rules)

    def _group(self, item: Item) -> list[Rule]:
        entries = item.mapping(("name", "rules"), required=("name", "rules"))
        name = entries["name"].text()
        rules: list[Rule] = []
        for entry in entries["rules"].sequence():
            try:
                rules.append(self._rule(entry, name))
            except RuleFileError as error:
                self.problems += error.problems
        return rules

    def _rule(self, item: Item, group: str) -> Rule:
        entries = item.mapping(_RULE_KEYS, required=("alert", "expr", "labels", "annotations"))
        alert = _name(entries["alert"])
        severity = entries["labels"].mapping(("severity",), required=("severity",))["severity"]
        notes = self._annotations(entries["annotations"])
        expr = self._program(entries["expr"], Kind.TRUTH)
        return Rule(
            alert=alert,
            severity=severity.choice(Severity, [s.value for s in Severity]),
            group=group,
            expr=expr,
            clear=self._program(entries["clear"], Kind.TRUTH) if "clear" in entries else None,
            hold=_duration(entries.get("for")),
            of=_of(entries.get("of")),
            keep_firing_for=_duration(entries.get("keep_firing_for")),
            warmup=entries["warmup"].whole(0, MOST_WARMUP) if "warmup" in entries else 0,
            needs=self._needs(entries.get("needs"), expr),
            summary=notes["summary"],
            description=notes.get("description", ""),
            reason=notes.get("reason", ""),
            runbook=entries["runbook"].text() if "runbook" in entries else f"docs/runbooks/{alert}.md",
            inhibited_by=tuple(_name(entry) for entry in _list(entries.get("inhibited_by"))),
            action=self._action(entries.get("action")),
            where=item.where,
            source=item.source(),
        )

    def _program(self, item: Item, wanted: Kind) -> Program:
        try:
            return compile_node(parse(item.text(), wanted, self.own))
        except ExpressionError as error:
            raise item.fail(f"{error.expected} (column {error.column} of the expression)") from None

    def _annotations(self, item: Item) -> dict[str, str]:
        entries = item.mapping(("summary", "description", "reason"), required=("summary",))
        for entry in entries.values():
            for name in placeholders(entry.text()):
                if name not in PLACEHOLDERS:
                    raise entry.fail(f"expected one of {', '.join(PLACEHOLDERS)} in braces, got {name!r}")
        return {name: entry.text() for name, entry in entries.items()}

    def _needs(self, item: Item | None, expr: Program) -> tuple[tuple[str, ...], ...]:
        """Without ``needs`` a rule needs every metric that its expression reads; "a | b" asks for one of them."""
        if item is None:
            return tuple((name,) for name in expr.metrics)
        needs: list[tuple[str, ...]] = []
        for entry in item.sequence():
            names = tuple(name.strip() for name in entry.text().split("|"))
            for name in names:
                if name not in BY_NAME and name not in self.own:
                    known = (*BY_NAME, *self.own)
                    raise entry.fail(f"expected a known metric, got {name!r}{nearest(name, known)}")
            needs.append(names)
        return tuple(needs)

    def _action(self, item: Item | None) -> Action | None:
        if item is None:
            return None
        entries = item.mapping(("command", "argument", "unless"), required=("command",))
        # a rule is for many runs and knows of no run's own knobs
        known = [kind.value for kind in CommandKind if kind is not CommandKind.SET_KNOB]
        command = entries["command"].choice(CommandKind, known)
        if (command in ARGUMENT_KINDS) != ("argument" in entries):
            wanted = "an argument" if command in ARGUMENT_KINDS else "no argument"
            raise item.fail(f"expected {wanted} for {command.value}")
        argument = self._program(entries["argument"], Kind.NUMBER) if "argument" in entries else None
        unless = tuple(_name(entry) for entry in _list(entries.get("unless")))
        return Action(command=command, argument=argument, unless=unless)

    def _metric_name(self, item: Item) -> str:
        name = item.text()
        if not METRIC_NAME.fullmatch(name) or name.startswith("config."):
            raise item.fail(f"expected a metric name such as my.metric, got {name!r}")
        return name

    def _no_twins(self, rules: list[Rule]) -> None:
        first: dict[str, Rule] = {}
        for rule in rules:
            other = first.setdefault(rule.key, rule)
            if other is not rule:
                self.problems.append(
                    f"{rule.where}: expected one rule {rule.alert} of severity {rule.severity.value}, "
                    f"got another at {other.where}"
                )


def _list(item: Item | None) -> list[Item]:
    return [] if item is None else item.sequence()


def _name(item: Item) -> str:
    text = item.text()
    if not NAME.fullmatch(text):
        raise item.fail(f"expected a name of small letters, digits and underscores, got {text!r}")
    return text


def _duration(item: Item | None) -> Duration:
    if item is None:
        return ONE_STEP
    try:
        duration = Duration.parse(item.text())
    except ValueError as error:
        raise item.fail(str(error)) from None
    if not duration.steps and not duration.seconds:
        raise item.fail('expected a duration above 0 such as "20 steps" or "5m"')
    return duration


def _of(item: Item | None) -> tuple[int, int]:
    if item is None:
        return (1, 1)
    parts = item.sequence()
    if len(parts) != 2:
        raise item.fail("expected [k, n]: held on k of the last n observed steps")
    n = parts[1].whole(1, MOST_OF)
    return (parts[0].whole(1, n), n)
