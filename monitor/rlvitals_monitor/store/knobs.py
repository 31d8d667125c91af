"""A run's knobs: settings of the user's own that may be changed while it trains."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from rlvitals.contract import codec
from rlvitals.contract.command import Knob
from rlvitals.contract.report import Refusal, RunInfo
from rlvitals_monitor.store.tables import runs

KNOBS_MAX = 64
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")


def check_knobs(told: Mapping[str, Knob]) -> tuple[dict[str, Any], tuple[Refusal, ...]]:
    """As they are stored, and what is wrong with the others, which are left out."""
    good: dict[str, Any] = {}
    refused: list[Refusal] = []
    for name, knob in told.items():
        fault = _fault(name, knob) or (f"a run has at most {KNOBS_MAX}" if len(good) == KNOBS_MAX else "")
        if fault:
            refused.append(Refusal(line=0, field=f"run.knobs.{name[:64]}", reason=fault))
        else:
            good[name] = codec.encode(knob)
    return good, tuple(refused)


def knobs_of(stored: Mapping[str, Any]) -> Mapping[str, Knob]:
    return codec.decode(RunInfo, {"id": "", "knobs": stored}).knobs


def read_knobs(conn: Connection, run: str) -> Mapping[str, Knob]:
    return knobs_of(conn.scalar(select(runs.c.knobs).where(runs.c.id == run)) or {})


def _fault(name: str, knob: Knob) -> str:
    if NAME.fullmatch(name) is None:
        return f"expected a name such as temperature, got {name[:64]!r}"
    return knob.fault()
