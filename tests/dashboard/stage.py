"""Runs that give every page something to show: told as a client tells them, judged as the worker judges.

Nothing here is drawn by chance, so the same pages come out each time; only the times are those of the day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.report import Event, EventKind, ReportBatch, RunInfo, StepReport, Text, TokenDetail
from rlvitals_monitor.control import mailbox
from rlvitals_monitor.store import commands
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.numbers import to_micros
from rlvitals_monitor.store.tables import runs
from rlvitals_monitor.worker import Worker
from tests.dashboard.completions import HALF, healthy, spelt
from tests.dashboard.house import House

STEP_S = 12.0
ABLE = {kind.value: "" for kind in CommandKind}
CONFIG = {
    "kl_coef": 0.08,
    "num_generations": 8,
    "max_completion_length": 1024,
    "learning_rate": 1e-6,
    "world_size": 8,
}
PER_REQUEST = 120
PROMPTS = (
    (
        "A train goes 60 km in 45 minutes. How fast is it?",
        "45 minutes are 0.75 h, and 60 / 0.75 = 80. It goes 80 km/h.",
    ),
    ("一个长方形长 8 厘米，宽 5 厘米，面积是多少？", "面积等于长乘以宽：8 × 5 = 40，所以面积是 40 平方厘米。"),
    ("What is the remainder of 2^10 divided by 7?", "2^3 = 8 leaves 1, so 2^9 leaves 1 and 2^10 leaves 2."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A run: ``turns`` is the step from which on it goes wrong, ``ends`` how long ago it was last heard, in s."""

    id: str
    name: str
    project: str = "math-grpo"
    framework: str = "trl 1.16.0"
    model: str = "Qwen3-8B"
    steps: int = 160
    turns: int | None = None
    ago_s: float = 4.0
    tags: tuple[str, ...] = ()


CAST = (
    Actor(id="qwen3-8b-beta-08", name="qwen3-8b beta 0.08", turns=112, tags=("beta-sweep", "h200")),
    Actor(id="qwen3-8b-beta-02", name="qwen3-8b beta 0.02", tags=("beta-sweep", "h200")),
    Actor(
        id="code-7b-dapo", name="code-7b DAPO", project="code-rl", framework="verl 0.9.1", model="Seed-Coder-8B"
    ),
    Actor(
        id="glm-tools", name="glm tools", project="agents", framework="slime 0.3", model="GLM-4-9B", ago_s=7200.0
    ),
)


def values(step: int, turns: int | None) -> dict[str, float]:
    """One step's scalars of a run that learns; from ``turns`` on the KL pull takes over and texts get long."""
    wave, way = math.sin(step / 6) + 0.5 * math.sin(step / 2.3), 1 - math.exp(-step / 70)
    ill = 0.0 if turns is None or step < turns else min(1.0, (step - turns + 1) / 24)
    return {
        "reward.mean": 0.18 + 0.55 * way - 0.38 * ill + 0.02 * wave,
        "reward.std": 0.31 - 0.09 * way + 0.01 * wave,
        "reward.zero_std_groups": 0.08 + 0.1 * way + 0.3 * ill + 0.01 * abs(wave),
        "length.mean": 310 + 120 * way + 420 * ill + 9 * wave,
        "length.max": min(1024.0, 700 + 200 * way + 400 * ill),
        "length.truncation_rate": max(0.0, 0.01 + 0.32 * ill + 0.004 * wave),
        "kl.k3": 0.004 + 0.012 * way + 0.2 * ill**2 + 0.0006 * wave,
        "kl.pull_ratio": 0.16 + 0.12 * way + 2.4 * ill + 0.02 * wave,
        "kl.coef": 0.08,
        "ratio.ess": 0.97 - 0.02 * way - 0.25 * ill + 0.003 * wave,
        "policy.loss": 0.02 - 0.015 * way + 0.06 * ill + 0.002 * wave,
        "policy.entropy": 1.15 - 0.35 * way + 0.7 * ill + 0.012 * wave,
        "policy.learning_rate": 1e-6,
        "gradient.norm": 0.42 + 0.05 * wave + 1.3 * ill,
        "numerics.nonfinite": 0.0,
        "text.invalid_utf8_per_1k": 0.0 if ill < 0.5 else 0.8 + 0.2 * wave,
        "progress.step_time": STEP_S + 0.6 * wave,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What there is: ``run`` is ill, ``other`` is well, ``command`` waits for a decision or was asked for."""

    run: str
    other: str
    command: str
    rule: str = "kl_pull_dominates/warning"


def perform(store: Store, now: datetime, cast: tuple[Actor, ...] = CAST) -> Staged:
    """All of it is stored, step by step, and judged as it comes."""
    worker = Worker(store)
    for actor in cast:
        for start in range(0, actor.steps, PER_REQUEST):
            with store.begin() as conn:
                store_batch(conn, _told(actor, range(start, min(start + PER_REQUEST, actor.steps)), now), now)
            worker.tick(now)
    freshen(store, now, cast)
    with store.begin() as conn:
        command = _command(conn, cast[0].id, now)
    return Staged(run=cast[0].id, other=cast[1].id, command=command)


def freshen(store: Store, now: datetime, cast: tuple[Actor, ...] = CAST) -> None:
    """As if each had been heard of just now."""
    with store.begin() as conn:
        for actor in cast:
            seen = to_micros(now - timedelta(seconds=actor.ago_s))
            begun = to_micros(now - timedelta(seconds=actor.ago_s + actor.steps * STEP_S))
            times = {"created_at": begun, "seen_at": seen, "progress_at": seen, "capabilities": ABLE}
            conn.execute(runs.update().where(runs.c.id == actor.id).values(**times))


def _told(actor: Actor, steps: range, now: datetime) -> ReportBatch:
    end = now.timestamp() - actor.ago_s
    rows = [
        StepReport(seq=4 * n, step=n, time_s=end - STEP_S * (actor.steps - n), values=values(n, actor.turns))
        for n in steps
    ]
    saved = [
        Event(seq=4 * n + 1, time_s=end, kind=EventKind.CHECKPOINT, step=n, payload={"folder": f"out/step-{n}"})
        for n in steps
        if n % 40 == 39
    ]
    texts = [text for n in steps if n >= actor.steps - 12 for text in _texts(actor, n)]
    info: Mapping[str, Any] = {"project": actor.project, "name": actor.name, "framework": actor.framework}
    return ReportBatch(
        run=RunInfo(id=actor.id, model=actor.model, tags=actor.tags, config=CONFIG, capabilities=ABLE, **info),
        attempt="a1",
        writer="rank0",
        steps=tuple(rows),
        events=tuple(saved),
        texts=tuple(texts),
    )


def _texts(actor: Actor, step: int) -> list[Text]:
    prompt, answer = PROMPTS[step % len(PROMPTS)]
    well = healthy(step, 0, 4 * step + 2, answer, prompt=prompt)
    if actor.turns is None or step < actor.turns:
        return [well, healthy(step, 1, 4 * step + 3, answer, prompt=prompt, reward=0.0)]
    return [well, _broken(step, 4 * step + 3, prompt, answer)]


def _broken(step: int, seq: int, prompt: str, answer: str) -> Text:
    """It goes on and on, and two of its characters are halves."""
    words = f"{answer} So the answer is {answer} So the answer is "
    ids, detail = spelt(words)
    pieces = {**detail.pieces, str(HALF): "e4bd"}
    scores = {"logp": tuple(-0.05 * (n % 40) for n in range(len(ids) + 2)), "ref_logp": (-0.5,) * (len(ids) + 2)}
    return Text(
        seq=seq,
        step=step,
        sample=1,
        prompt=prompt,
        completion=f"{words}\ufffd\ufffd",
        token_ids=(*ids, HALF, HALF),
        reward=0.0,
        truncated=True,
        invalid_utf8=2,
        why="worst_utf8",
        tokens=TokenDetail(pieces=pieces, scores=scores),
    )


def _command(conn: Connection, run: str, now: datetime) -> str:
    """One that a rule proposed; where none did, what a person asked for."""
    waiting, _ = commands.page(conn, run=run, state=CommandState.PROPOSED, limit=1)
    if waiting:
        return waiting[0].id
    return mailbox.request(conn, run, CommandKind.CHECKPOINT, None, "ada", "before the night", now).id


def furnish(house: House, staged: Staged) -> None:
    """People, tokens, links, silences, policies and ages of data, by the API as an administrator would."""
    for name, role in (("Ada Okafor", "admin"), ("Lin Wei", "operator"), ("Sam Rivera", "viewer")):
        house.post("/users", {"name": name, "role": role})
    house.post("/tokens", {"name": "cluster-a trainers", "scopes": ["ingest:math-grpo"], "days": 90.0})
    house.post("/tokens", {"name": "wall screen", "scopes": ["read"]})
    hook = "https://hooks.slack.com/services/T0/B0/n0b0dysees"
    house.post("/channels", {"name": "night-shift", "kind": "slack", "url": hook, "severity": "critical"})
    house.patch(f"/runs/{staged.run}", {"owner": "Ada Okafor", "labels": ["paper"]})
    house.patch(f"/runs/{staged.other}", {"owner": "Lin Wei"})
    house.post(f"/runs/{staged.run}/shares", {"hours": 72.0, "view": "?from=100&to=159"})
    house.put("/retention", {"project": "", "points_days": 90.0, "texts_days": 30.0})
    house.put("/policies", {"scope": "project", "name": "math-grpo", "policy": "approve"})
    wish = {
        "match": [f"run={staged.other}", "rule=truncation"],
        "lasts_s": 7200.0,
        "why": "long answers are wanted here",
    }
    house.post("/silences", wish)
