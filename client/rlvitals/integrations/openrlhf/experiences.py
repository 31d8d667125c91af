"""OpenRLHF's experiences of a rollout → the arrays of a loop's rollout, and what only the controller measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from rlvitals.integrations.pieces import Piece
from rlvitals.probes import kl, nonfinite, ratios
from rlvitals.probes.arrays import Flags, Floats, Whole
from rlvitals.probes.kl_form import Form
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

GRADIENT_PARTS = ("kl.grad_sq", "kl.pull_sq", "kl.grad_max", "kl.grad_top_id_share", "kl.nan_gradient_tokens")
_REASONS = {True: "length", False: "stop"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completions:
    """A whole rollout in the order of its prompts: ``ids``, ``chosen``, ``advantages`` (N, T), the rest by row.

    A completion begins at its first action; what a tool wrote between two actions is in it and not ``chosen``.
    """

    ids: Whole
    chosen: Flags
    rewards: Floats | None
    advantages: Floats | None
    finish_reasons: list[str] | None
    prompts: list[Any] | None

    @classmethod
    def of(cls, experiences: Sequence[Any]) -> Completions:
        """Tensors of a CPU; ``sequences`` (B, S) prompt first, the masks (B, S - 1) one place behind."""
        rows = [row for experience in experiences for row in _rows(experience)]
        order = _order(experiences, len(rows))
        spans = [_span(mask) for _, mask, _ in rows]
        width = max((end - start for start, end in spans), default=0)
        ids, chosen = np.zeros((len(rows), width), np.int64), np.zeros((len(rows), width), np.bool_)
        told = bool(rows) and all(advantage is not None for *_, advantage in rows)
        advantages = np.zeros((len(rows), width), np.float64) if told else None
        for place, row in enumerate(order):
            (tokens, mask, advantage), (start, end) = rows[row], spans[row]
            ids[place, : end - start] = tokens[start:end]
            chosen[place, : end - start] = mask[start:end]
            if advantages is not None and advantage is not None:
                advantages[place, : end - start] = advantage[start:end]
        truncated = _by_row(experiences, "truncated", order)
        return cls(
            ids=ids,
            chosen=chosen,
            rewards=_by_row(experiences, "rewards", order),
            advantages=advantages,
            finish_reasons=None if truncated is None else [_REASONS[bool(cut)] for cut in truncated],
            prompts=_prompts(experiences, order),
        )


def explained_variance(experiences: Sequence[Any]) -> float | None:
    """1 - Var(returns - values) / Var(returns) over trained tokens; None without a critic or a variance."""
    if not experiences or any(e.values is None or e.returns is None for e in experiences):
        return None
    values = torch.cat([e.values[e.action_mask.bool()].double() for e in experiences])
    returns = torch.cat([e.returns[e.action_mask.bool()].double() for e in experiences])
    spread = returns.var(correction=0) if len(returns) else torch.zeros(())
    return None if spread == 0 else float(1 - (returns - values).var(correction=0) / spread)


def reference_pieces(experience: Any, reference: Any, form: Form, coefficient: float) -> Iterator[Piece]:
    """KL to the reference where it is a part of the reward: of the policy that sampled, without a gradient."""
    logp, mask = experience.action_log_probs, experience.action_mask
    ids = experience.sequences[:, 1:][:, -logp.shape[1] :]
    yield "the reference", partial(nonfinite.measure_nonfinite, {"ref": reference}, mask, ids=ids)
    yield "ratios to the reference", partial(ratios.measure_reference, logp, reference, mask, ids=ids)
    yield "KL in the reward", partial(_kl, logp, reference, mask, ids, form, coefficient)


def reference_of(experience: Any, estimator: str) -> Any:
    """The reference's log-probs (B, A); where they were dropped, k1 still holds them. None where nothing does."""
    if experience.base_action_log_probs is not None:
        return experience.base_action_log_probs
    if estimator != "k1" or experience.kl is None:
        return None
    return experience.action_log_probs.float() - experience.kl.float()


def _kl(logp: Any, reference: Any, mask: Any, ids: Any, form: Form, coefficient: float) -> Reduction:
    found = kl.measure_kl(
        logp,
        reference,
        mask,
        logp.new_ones((1, 1)),
        coef=coefficient,
        estimator=form.estimator,
        clamp=form.clamp,
        ids=ids,
    )
    return replace(found, build=partial(_without_gradient, found.build))


def _without_gradient(build: Any, parts: Sequence[Floats]) -> Tally:
    tally: Tally = build(parts)
    return Tally(
        counts={name: value for name, value in tally.counts.items() if name != "kl.poisoned"},
        sums={name: value for name, value in tally.sums.items() if name not in GRADIENT_PARTS},
        minima=tally.minima,
        maxima={name: value for name, value in tally.maxima.items() if name not in GRADIENT_PARTS},
        missing=tally.missing,
    )


Row = tuple[Whole, Flags, "Floats | None"]


def _rows(experience: Any) -> Iterator[Row]:
    mask = _array(experience.action_mask).astype(np.bool_)
    tokens = _array(experience.sequences)[:, 1:][:, -mask.shape[1] :]
    advantages = None if experience.advantages is None else _array(experience.advantages)
    for row in range(len(mask)):
        yield tokens[row], mask[row], None if advantages is None else advantages[row]


def _array(value: Any) -> Any:
    value = value.detach().cpu()
    return (value.float() if value.is_floating_point() else value).numpy()


def _span(mask: Flags) -> tuple[int, int]:
    places = np.flatnonzero(mask)
    return (int(places[0]), int(places[-1]) + 1) if places.size else (0, 0)


def _order(experiences: Sequence[Any], rows: int) -> list[int]:
    """Rows by their place in the rollout, so that the completions of a prompt are neighbours."""
    places = [int(place) for e in experiences for place in (e.index if e.index is not None else ())]
    return [int(row) for row in np.argsort(places, kind="stable")] if len(places) == rows else list(range(rows))


def _by_row(experiences: Sequence[Any], name: str, order: Sequence[int]) -> Floats | None:
    found: list[Any] = [getattr(experience, name, None) for experience in experiences]
    if not found or any(value is None for value in found):
        return None
    values: Floats = torch.cat([value.detach().cpu().double().reshape(-1) for value in found]).numpy()
    return values[list(order)] if len(values) == len(order) else None


def _prompts(experiences: Sequence[Any], order: Sequence[int]) -> list[Any] | None:
    found = [prompt for experience in experiences for prompt in experience.prompts or ()]
    return [found[row] for row in order] if len(found) == len(order) else None
