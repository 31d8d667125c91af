"""A small run whose KL coefficient a policy steers: a table of logits, group-relative advantages, clipping, k3.

An episode is a string of thoughts and tool calls, ended by an answer. A call makes the environment write one more
token, which ends the turn, and reveals the answer half of the time. The reference knows half of what to do.
One fault begins at step `FAULT_AT`; until then the run is the same under every policy.

The derivative of k3 = exp(d) - 1 - d, d = ref - logp, by logp is 1 - exp(d) (Schulman 2020). The KL pull over the
policy's is coef × ‖w k3'‖ / ‖w A‖ with the loss's own token weights w.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Ids = NDArray[np.int64]

FAULT_AT = 60
STEPS = 660
GROUPS, GROUP_SIZE, LONGEST = 12, 8, 16
ANSWERS, THOUGHTS = 8, 6
CALL, END = ANSWERS + THOUGHTS, ANSWERS + THOUGHTS + 1
VOCABULARY = END + 1
UNTOLD, CALLED = ANSWERS, ANSWERS + 1
"""States: an answer that was revealed, none yet, or a call was just made and the environment writes."""
CLIP, EPOCHS, GRADIENT_CLIP, RATE = 0.2, 2, 1.0, 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """What is changed at `FAULT_AT`. ``sgd``: plain steps of this rate, not Adam's. ``thought``: its reward."""

    name: str
    coefficient: float
    target: float
    before: float = 0.01
    sgd: float = 0.0
    thought: float = 0.0
    masked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Means of the last 40 steps; ``died``: at a number that was none."""

    before: float
    success: float
    kl: float
    pull: float
    coefficient: float
    died: bool


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Per token: state, id, whether the loss takes it, its episode; per episode: reward and success."""

    state: Ids
    id: Ids
    mask: NDArray[np.bool_]
    episode: Ids
    reward: Numbers
    right: NDArray[np.bool_]


def reference(random: np.random.Generator) -> Numbers:
    """Logits (states, vocabulary) of a model that knows the task half."""
    p = np.full((ANSWERS + 2, VOCABULARY), 0.01)
    p[UNTOLD, :ANSWERS] = 0.5 / ANSWERS
    p[UNTOLD, ANSWERS:CALL] = 0.12 / THOUGHTS
    p[UNTOLD, CALL] = 0.35
    for answer in range(ANSWERS):
        p[answer, :ANSWERS] = 0.2 / ANSWERS
        p[answer, answer] += 0.4
        p[answer, ANSWERS:CALL] = 0.12 / THOUGHTS
    p[CALLED, END] = 0.75
    logits: Numbers = np.log(p / p.sum(1, keepdims=True)) + 0.1 * random.standard_normal(p.shape)
    return logits


def train(regime: Regime, seed: int, steer: Callable[[int, Mapping[str, float]], float | None]) -> Ended:
    """``steer`` gets each step's metrics from the fault on and may answer a new coefficient."""
    random = np.random.default_rng(seed)
    start = reference(random)
    logits, moments = start.copy(), (np.zeros_like(start), np.zeros_like(start))
    coefficient, seen = regime.before, []
    for step in range(STEPS):
        faulty = step >= FAULT_AT
        if step == FAULT_AT:
            coefficient = regime.coefficient
        batch = _sample(logits, random, regime.thought if faulty else 0.0)
        if not regime.masked and faulty:
            batch.mask[:] = True
        metrics = _update(logits, start, moments, batch, coefficient, regime.sgd if faulty else 0.0, step)
        metrics |= {"kl.coef": coefficient, "success": float(batch.right.mean())}
        seen.append(metrics)
        if not np.isfinite(logits).all():
            break
        if faulty:
            coefficient = steer(step, metrics) or coefficient
    return _ended(seen, coefficient)


def _ended(seen: list[dict[str, float]], coefficient: float) -> Ended:
    def mean(name: str, rows: list[dict[str, float]]) -> float:
        return float(np.mean([row[name] for row in rows if name in row] or [np.nan]))

    died, tail = len(seen) < STEPS, seen[-40:]
    return Ended(
        before=mean("success", seen[FAULT_AT - 20 : FAULT_AT]),
        success=0.0 if died else mean("success", tail),
        kl=mean("kl.capped", tail),
        pull=mean("kl.pull_ratio", tail),
        coefficient=coefficient,
        died=died,
    )


def _probabilities(logits: Numbers) -> Numbers:
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    found: Numbers = shifted / shifted.sum(1, keepdims=True)
    return found


def _sample(logits: Numbers, random: np.random.Generator, thought: float) -> _Batch:
    count = GROUPS * GROUP_SIZE
    sums = np.cumsum(_probabilities(logits), 1)
    target = np.repeat(random.integers(0, ANSWERS, GROUPS), GROUP_SIZE)
    state, live = np.full(count, UNTOLD), np.ones(count, bool)
    reward, right = np.zeros(count), np.zeros(count, bool)
    calls = np.zeros(count)
    rows: list[tuple[Ids, Ids, NDArray[np.bool_], Ids]] = []
    for _ in range(LONGEST):
        who = np.flatnonzero(live)
        if not len(who):
            break
        at = state[who]
        drawn = np.minimum((random.random(len(who))[:, None] > sums[at]).sum(1), VOCABULARY - 1)
        forced = at == CALLED
        drawn[forced] = END
        rows.append((at, drawn, ~forced, who))
        called = ~forced & (drawn == CALL)
        calls[who] += called
        told = forced & (random.random(len(who)) < 0.5)
        state[who[forced]] = UNTOLD
        state[who[told]] = target[who[told]]
        state[who[called]] = CALLED
        reward[who] += thought * ((drawn >= ANSWERS) & (drawn < CALL))
        ended = ~forced & (drawn < ANSWERS)
        right[who[ended]] = drawn[ended] == target[who[ended]]
        live[who[ended | (~forced & (drawn == END))]] = False
    reward += right - 0.1 * np.maximum(calls - 1, 0)
    state, chosen, mask, episode = (np.concatenate(column) for column in zip(*rows, strict=True))
    return _Batch(state=state, id=chosen, mask=mask, episode=episode, reward=reward, right=right)


def _update(
    logits: Numbers,
    start: Numbers,
    moments: tuple[Numbers, Numbers],
    batch: _Batch,
    coefficient: float,
    sgd: float,
    step: int,
) -> dict[str, float]:
    """Trains in place on one batch; returns the metrics of its first pass."""
    grouped = batch.reward.reshape(GROUPS, GROUP_SIZE)
    spread = grouped.std(1, ddof=1, keepdims=True)
    advantage = ((grouped - grouped.mean(1, keepdims=True)) / (spread + 1e-4)).ravel()
    at, chosen = batch.state[batch.mask], batch.id[batch.mask]
    gain = advantage[batch.episode[batch.mask]]
    reference_logp = np.log(_probabilities(start))[at, chosen]
    old = np.log(_probabilities(logits))[at, chosen]
    metrics: dict[str, float] = {}
    for epoch in range(EPOCHS):
        p = _probabilities(logits)
        with np.errstate(all="ignore"):
            logp = np.log(p)[at, chosen]
            ratio, force = np.exp(logp - old), -np.expm1(reference_logp - logp)
            clipped = ((gain > 0) & (ratio > 1 + CLIP)) | ((gain < 0) & (ratio < 1 - CLIP))
            by_logp = (coefficient * force - np.where(clipped, 0.0, gain * ratio)) / len(at)
        sums = np.bincount(at * VOCABULARY + chosen, by_logp, logits.size)
        gradient: Numbers = sums.astype(np.float64).reshape(logits.shape)
        gradient -= p * gradient.sum(1, keepdims=True)
        norm = float(np.sqrt((gradient**2).sum()))
        if not epoch:
            metrics = _measure(reference_logp - logp, force, gain, chosen, coefficient)
            metrics |= {"gradient.norm": norm, "reward.mean": float(batch.reward.mean())}
            metrics["reward.group_std"] = float(spread.mean())
            metrics["policy.entropy"] = float(-(p * np.log(np.maximum(p, 1e-300))).sum(1)[at].mean())
        gradient *= min(1.0, GRADIENT_CLIP / (norm + 1e-12))
        _step(logits, gradient, moments, sgd, step * EPOCHS + epoch + 1)
    return metrics


def _measure(d: Numbers, force: Numbers, gain: Numbers, chosen: Ids, coefficient: float) -> dict[str, float]:
    """KL metrics of the tokens under the mask, by the registry's names."""
    k3 = -force - d
    squares = force**2
    policy = float(np.sqrt((gain**2).sum()))
    found = {
        "kl.k3": float(k3.mean()),
        "kl.capped": float(np.minimum(k3, 10.0).mean()),
        "kl.grad_max": float(np.abs(force).max()),
        "kl.grad_top_id_share": float(np.bincount(chosen, squares).max() / max(squares.sum(), 1e-300)),
        "numerics.nonfinite_logprobs": float((~np.isfinite(d)).sum()),
    }
    if policy:
        found["kl.pull_ratio"] = coefficient * float(np.sqrt(squares.sum())) / policy
    return found


def _step(logits: Numbers, gradient: Numbers, moments: tuple[Numbers, Numbers], sgd: float, count: int) -> None:
    if sgd:
        logits -= sgd * gradient
        return
    first, second = moments
    first += 0.1 * (gradient - first)
    second += 0.01 * (gradient**2 - second)
    logits -= RATE * (first / (1 - 0.9**count)) / (np.sqrt(second / (1 - 0.99**count)) + 1e-8)
