"""Everything that judging an attempt remembers, as JSON and back: any process goes on where another died.

Non-finite numbers and times are spelt by the contract's codec; `restore` reads what `dump` wrote, also after a
change of the rules: a rule that changed starts anew but keeps its open alert, a rule that is gone is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rlvitals.contract import codec
from rlvitals.contract.alert import Truth
from rlvitals_monitor.alerts.components import Components
from rlvitals_monitor.alerts.shapes import Shapes
from rlvitals_monitor.alerts.state import INACTIVE, Standing
from rlvitals_monitor.rules.evaluate import Evaluation, RuleMemory, Seen, depth_of
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.rules.window import Window

FORMAT = 1
Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a rule stood at the last judged step, for people. ``metric`` is what stood against a threshold."""

    truth: Truth = Truth.UNKNOWN
    reason: str = "no step has been judged yet"
    value: float | None = None
    threshold: float | None = None
    metric: str = ""


@dataclass(slots=True, kw_only=True)
class AttemptMemory:
    """``orphans`` are standings of rules that are no longer there and may still have an open alert.

    ``evaluations`` are those of the last step; neither they nor ``shapes`` are kept.
    """

    window: Window
    rules: dict[str, RuleMemory]
    standings: dict[str, Standing] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    orphans: dict[str, Standing] = field(default_factory=dict)
    evaluations: dict[str, Evaluation] = field(default_factory=dict)
    components: Components = field(default_factory=Components)
    shapes: Shapes | None = None

    def fits(self, rules: Sequence[Rule]) -> bool:
        """Whether it was made for exactly these rules."""
        return {key: kept.fingerprint for key, kept in self.rules.items()} == {r.key: r.fingerprint for r in rules}


def begin(rules: Sequence[Rule], config: Json) -> AttemptMemory:
    """The memory before the first step."""
    fresh = {rule.key: RuleMemory(fingerprint=rule.fingerprint) for rule in rules}
    return AttemptMemory(window=Window(depth_of(rules), config), rules=fresh)


def dump(memory: AttemptMemory) -> dict[str, object]:
    """JSON-safe after the codec; numbers in it may be infinite."""
    return {
        "format": FORMAT,
        "window": memory.window.dump(),
        "rules": {key: _dump_rule(kept) for key, kept in memory.rules.items() if kept.slots or kept.recent},
        "standings": {key: standing for key, standing in memory.standings.items() if standing != INACTIVE},
        "verdicts": memory.verdicts,
        "components": memory.components.dump(),
    }


def restore(rules: Sequence[Rule], config: Json, kept: Json) -> AttemptMemory:
    """The inverse of `dump` after the codec. Raises `codec.DecodeError` for what it never wrote."""
    memory = begin(rules, config)
    if kept.get("format") != FORMAT:
        raise codec.DecodeError("memory.format", str(FORMAT), kept.get("format"))
    _restore_window(memory.window, _mapping(kept, "window"))
    for key, entry in _mapping(kept, "rules").items():
        known = memory.rules.get(key)
        if known is not None and isinstance(entry, Mapping) and entry.get("fingerprint") == known.fingerprint:
            _restore_rule(known, entry)
    standings = codec.decode(dict[str, Standing], _mapping(kept, "standings"), "memory.standings")
    memory.standings = {key: standing for key, standing in standings.items() if key in memory.rules}
    memory.orphans = {key: standing for key, standing in standings.items() if key not in memory.rules}
    verdicts = codec.decode(dict[str, Verdict], _mapping(kept, "verdicts"), "memory.verdicts")
    memory.verdicts = {key: verdict for key, verdict in verdicts.items() if key in memory.rules}
    components = kept.get("components")
    memory.components.restore(components if isinstance(components, Mapping) else {})
    open_alerts = {key.partition("/")[0] for key, standing in memory.standings.items() if standing.is_open}
    for key, rule in memory.rules.items():
        rule.open = key.partition("/")[0] in open_alerts
    return memory


def verdicts_of(kept: Json) -> tuple[dict[str, Verdict], frozenset[str]]:
    """What the rules page needs of a stored memory: the last verdicts, and the metrics ever seen."""
    return said_of(_mapping(kept, "verdicts"), _mapping(kept, "window").get("seen"))


def said_of(verdicts: object, seen: object) -> tuple[dict[str, Verdict], frozenset[str]]:
    """The same of those two parts of it."""
    known = codec.decode(dict[str, Verdict], verdicts, "memory.verdicts")
    return known, frozenset(map(str, seen)) if isinstance(seen, Sequence) else frozenset()


def _dump_rule(memory: RuleMemory) -> dict[str, object]:
    recent = [[seen.step, seen.time, seen.held] for seen in memory.recent]
    return {"fingerprint": memory.fingerprint, "slots": memory.slots, "recent": recent}


def _restore_rule(memory: RuleMemory, kept: Json) -> None:
    slots = codec.decode(dict[str, tuple[float, ...]], _mapping(kept, "slots"), "memory.slots")
    memory.slots = {key: list(values) for key, values in slots.items()}
    recent = kept.get("recent")
    for entry in recent if isinstance(recent, Sequence) else ():
        step, time, held = entry
        memory.recent.append(Seen(int(step), codec.decode(datetime, time, "memory.recent"), bool(held)))


def _restore_window(window: Window, kept: Json) -> None:
    rings: dict[str, tuple[list[int], list[float]]] = {}
    for name, entry in _mapping(kept, "rings").items():
        if isinstance(entry, Sequence):
            steps, values = entry
            rings[name] = ([int(step) for step in steps], [codec.decode_number(value, name) for value in values])
    seen = kept.get("seen")
    window.restore(
        step=codec.decode(int, kept.get("step"), "memory.window.step"),
        observed=codec.decode(int, kept.get("observed"), "memory.window.observed"),
        seen=map(str, seen) if isinstance(seen, Sequence) else (),
        rings=rings,
    )


def _mapping(kept: Json, name: str) -> Json:
    value = kept.get(name)
    if not isinstance(value, Mapping):
        raise codec.DecodeError(f"memory.{name}", "an object", value)
    return value
