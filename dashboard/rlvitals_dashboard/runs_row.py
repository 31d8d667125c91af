"""A run as a row of the table, in plain values that the browser draws (assets/runs.js). Pure.

Untrusted text comes as pieces: a string, or ``[shown, name]`` for one character that would not be seen. The
browser writes each as text and never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import quote
from zlib import crc32

from rlvitals.contract.view import RunState, RunView
from rlvitals_dashboard.language import t
from rlvitals_dashboard.theme import LIGHTS, RUN_STATES, SEVERITIES, Look
from rlvitals_dashboard.words import gpu_hours, number, pieces

Row: TypeAlias = dict[str, Any]

LONGEST_NAME = 96
LONGEST_REASON = 200
LONGEST_TAG = 24
TAGS_SHOWN = 4


def row_of(run: RunView, prefix: str) -> Row:
    """``print`` changes when anything that is shown does; ``place`` when the row may belong elsewhere."""
    light, state = LIGHTS[run.light], RUN_STATES[run.state]
    row = {
        "id": run.id,
        "href": f"{prefix}run/{quote(run.id, safe='')}",
        "tone": light.tone,
        "light": _look(light),
        "state": None if run.state is RunState.RUNNING else _look(state),
        "name": shown(run.name or run.id, LONGEST_NAME),
        "reason": shown(run.reason, LONGEST_REASON),
        "group": run.project,
        "project": shown(run.project, LONGEST_NAME),
        "framework": shown(run.framework, LONGEST_NAME),
        "model": shown(run.model, LONGEST_NAME),
        "step": "–" if run.last_step is None else f"{run.last_step:,}",
        "rate": "–" if run.steps_per_minute is None else number(run.steps_per_minute),
        "kl": None if run.kl_coef is None else number(run.kl_coef),
        "gpu": None if run.gpu_hours is None else gpu_hours(run.gpu_hours),
        "alerts": _alerts(run),
        "firing": run.firing,
        "owner": shown(run.owner, LONGEST_TAG),
        "labels": [shown(label, LONGEST_TAG) for label in run.labels[:TAGS_SHOWN]],
        "tags": [shown(tag, LONGEST_TAG) for tag in run.tags[:TAGS_SHOWN]],
        "more": max(0, len(run.labels) - TAGS_SHOWN) + max(0, len(run.tags) - TAGS_SHOWN),
        "archived": run.archived_at is not None,
        "seen": run.last_seen_at.isoformat(),
        "place": f"{run.light.value} {run.state.value} {run.firing}",
    }
    return row | {"print": crc32(json.dumps(row).encode("ascii"))}


def shown(text: str, limit: int) -> list[str | list[str]]:
    """The pieces of untrusted text; what is beyond ``limit`` characters is counted, not shown."""
    if len(text) <= limit and text.isascii() and text.isprintable():
        return [text] if text else []
    told: list[str | list[str]] = [[p.shown, p.name] if p.name else p.shown for p in pieces(text[:limit])]
    return [*told, t("… {count} more", count=len(text) - limit)] if len(text) > limit else told


def _look(look: Look) -> list[str]:
    return [look.tone, look.mark, t(look.word)]


def _alerts(run: RunView) -> Sequence[list[str]]:
    """By severity, the worst first; ``info`` only where nothing worse fires."""
    counts = dict(zip(SEVERITIES.values(), _by_severity(run), strict=True))
    return [[look.tone, look.mark, f"{count:,} {t(look.word)}"] for look, count in counts.items() if count]


def _by_severity(run: RunView) -> tuple[int, int, int]:
    """Critical, warning, info: in the order of `SEVERITIES`."""
    return run.critical, run.warnings, run.firing - run.critical - run.warnings
