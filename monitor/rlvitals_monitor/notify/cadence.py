"""The keys of a channel that say when and how often it speaks: durations as 30s, 10m, 4h, 1d or whole seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rlvitals_monitor.notify.channel import NAME, Escalation
from rlvitals_monitor.rules.document import Item

KEYS = ("group_wait", "group_interval", "repeat", "escalate", "budget")
BUDGET_MAX = 600
FOR_PEOPLE: Mapping[str, object] = {"budget": 20, "group_wait_s": 10.0, "group_interval_s": 300.0}
"""Where a channel that people read says nothing else: a screenful a minute is more than anybody reads."""
_DURATION = re.compile(r"(\d{1,6})(s|m|h|d)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_S = {"group_wait": 600.0, "group_interval": 86400.0, "repeat": 7 * 86400.0, "after": 7 * 86400.0}
_SHORTEST_S = {"group_wait": 0.0, "group_interval": 0.0, "repeat": 60.0, "after": 0.0}


def read_cadence(entries: Mapping[str, Item]) -> dict[str, object]:
    """The fields of `Channel` that these keys give. Raises `RuleFileError`."""
    given: dict[str, object] = {
        f"{name}_s": _duration(entries[name], name)
        for name in ("group_wait", "group_interval", "repeat")
        if name in entries
    }
    if "budget" in entries:
        given["budget"] = entries["budget"].whole(0, BUDGET_MAX)
    if "escalate" in entries:
        given["escalation"] = _escalation(entries["escalate"])
    return given


def _escalation(item: Item) -> Escalation:
    entries = item.mapping(("to", "after"), ("to", "after"))
    name = entries["to"].text()
    if not NAME.fullmatch(name):
        raise entries["to"].fail(f"expected a channel's name, got {name[:60]!r}")
    return Escalation(to=name, after_s=_duration(entries["after"], "after"), where=entries["to"].where)


def _duration(item: Item, name: str) -> float:
    """``repeat: never`` is said as ``repeat: 0``."""
    text = item.text()
    found = _DURATION.fullmatch(text)
    if found is None:
        raise item.fail(f"expected a duration, such as 30s, 10m, 4h or 1d, got {text[:20]!r}")
    seconds = int(found[1]) * _SECONDS[found[2] or "s"]
    if seconds and not _SHORTEST_S[name] <= seconds <= _LONGEST_S[name]:
        least, most = _SHORTEST_S[name], _LONGEST_S[name]
        raise item.fail(f"expected {name} from {least:.0f} to {most:.0f} seconds, got {text[:20]!r}")
    return seconds
