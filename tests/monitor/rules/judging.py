"""Small tools: one rule from its words, and its verdicts over written steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone

from rlvitals.contract.metrics import METRICS
from rlvitals_monitor.rules.evaluate import Evaluation, RuleMemory, depth_of, evaluate, learn
from rlvitals_monitor.rules.expression import parse
from rlvitals_monitor.rules.functions import Kind
from rlvitals_monitor.rules.loader import load_text
from rlvitals_monitor.rules.program import Frame, compile_node
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.rules.value import Number, Verdict
from rlvitals_monitor.rules.window import Window

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAMES = tuple(metric.name for metric in METRICS)


def a_rule(expr: str, **more: str) -> Rule:
    """``more`` are further entries as YAML, such as ``of="[2, 3]"``; ``for`` is written ``hold``."""
    severity = more.pop("severity", "warning")
    lines = "".join(f"        {'for' if key == 'hold' else key}: {value}\n" for key, value in more.items())
    (rule,) = load_text(
        "groups:\n  - name: g\n    rules:\n      - alert: a\n"
        f"        expr: {expr}\n        labels: {{severity: {severity}}}\n"
        f"        annotations: {{summary: s}}\n{lines}"
    )
    return rule


def window_of(values: Mapping[str, float], config: Mapping[str, object] | None = None) -> Window:
    window = Window({}, config)
    window.push(1, START, values)
    return window


def truth(expr: str, values: Mapping[str, float], config: Mapping[str, object] | None = None) -> Verdict:
    """What an expression without memory comes to at one step."""
    return compile_node(parse(expr)).truth(Frame(window_of(values, config), {}))


def number(expr: str, values: Mapping[str, float], config: Mapping[str, object] | None = None) -> Number:
    return compile_node(parse(expr, Kind.NUMBER)).number(Frame(window_of(values, config), {}))


def judge(
    rule: Rule, steps: Sequence[Mapping[str, float]], config: Mapping[str, object] | None = None
) -> list[Evaluation]:
    """The rule alone over steps 1, 2, …, a second apart, with no alert ever open."""
    window, memory = Window(depth_of([rule]), config), RuleMemory()
    found: list[Evaluation] = []
    for place, values in enumerate(steps, start=1):
        window.push(place, START + timedelta(seconds=place), values)
        found.append(evaluate(rule, window, memory))
        learn(rule, window, memory, found[-1])
    return found


def numbers(expr: str, series: Sequence[float | None]) -> list[Number]:
    """What a number expression over ``kl.k3`` comes to at each step (None: missing)."""
    program = compile_node(parse(expr, Kind.NUMBER))
    window = Window(program.depth)
    slots: dict[str, list[float]] = {}
    found: list[Number] = []
    for place, value in enumerate(series, start=1):
        window.push(place, START + timedelta(seconds=place), {} if value is None else {"kl.k3": value})
        frame = Frame(window, slots)
        for call in program.remembering:
            call.read(frame)
        found.append(program.number(frame))
        for call in program.remembering:
            if call.key in frame.inputs:
                slot = slots.setdefault(call.key, [])
                call.memory.learn(slot, frame.inputs[call.key], call.count, True, True)
    return found
