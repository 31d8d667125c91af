"""Rules for a log of a few lines. Pure.

People post 1 to 30 lines. A level that is held on every line given counts as held, so that what needs no history
can speak; a baseline stays unknown until it has seen enough steps, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rlvitals_monitor.rules.rule import Duration, Rule

SHORT = 30
"""Up to so many steps a log counts as short."""
LOG_STEPS = "log_steps"
"""In the configuration of an imported run: how many steps its log holds, where these are few."""
BEST_SO_FAR = frozenset({"peak", "trough"})
"""Functions with a memory that mean something from the first step on."""


def shorten(rules: Sequence[Rule], steps: int) -> tuple[Rule, ...]:
    """``rules`` for a log of so many steps: unchanged where it is long, else persistence is at most its length."""
    if steps > SHORT:
        return tuple(rules)
    return tuple(_shorten(rule, max(steps, 1)) for rule in rules)


def fit(rules: Sequence[Rule], config: Mapping[str, object]) -> tuple[Rule, ...]:
    """``rules`` for a run whose configuration may say that it is a short log."""
    steps = config.get(LOG_STEPS)
    return shorten(rules, steps) if isinstance(steps, int) and steps > 0 else tuple(rules)


def _shorten(rule: Rule, steps: int) -> Rule:
    k, n = rule.of
    return replace(
        rule,
        warmup=0 if all(call.name in BEST_SO_FAR for call in rule.remembering) else rule.warmup,
        hold=Duration(steps=min(max(rule.hold.steps, 1), steps)),
        of=(min(k, steps), min(n, steps)),
    )
