"""A digest's lines: what each of several runs has, and the rest in one line, so that the counts add up. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlvitals_monitor.notify.language import Phrase
from rlvitals_monitor.notify.notification import RunCount
from rlvitals_monitor.notify.plain_text import NAME_LIMIT, plain, run_name

RULES_SHOWN = 3


def totals(counts: Sequence[RunCount]) -> tuple[int, int]:
    """Changes to firing and to resolved, over all runs."""
    return sum(count.firing for count in counts), sum(count.resolved for count in counts)


def told_runs(counts: Sequence[RunCount], most: int, say: Phrase) -> Iterator[tuple[str, str]]:
    """(run, what it has) of the first ``most``, then one line that counts the others."""
    for count in counts[:most]:
        yield run_name(count.run), _told(count, say)
    rest = counts[most:]
    if rest:
        firing, resolved = totals(rest)
        yield say("{more} more runs", more=len(rest)), _changes(firing, resolved, say)


def _told(count: RunCount, say: Phrase) -> str:
    rules = [f"{plain(rule, NAME_LIMIT)} ×{times}" for rule, times in count.rules[:RULES_SHOWN]]
    strongest = f"{say(count.severity.value.upper())}, " if count.firing else ""
    told = f"{strongest}{_changes(count.firing, count.resolved, say)}"
    return f"{told}: {', '.join(rules)}" if rules else told


def _changes(firing: int, resolved: int, say: Phrase) -> str:
    return say("{firing} firing, {resolved} resolved", firing=firing, resolved=resolved)
