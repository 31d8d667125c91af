"""KL that is part of the reward (RLOO): measured once a generation, from the log-probs that scored it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.integrations.pieces import Piece, absent
from rlvitals.integrations.trl import facts, measure
from rlvitals.probes import kl, ratios
from rlvitals.probes.arrays import Floats
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.tally import Tally

SHARES = ("kl.pull_ratio", "kl.share_of_gradient")
NORMALISED = "not measured: advantages are normalised, which hides what part of them is KL"
CUT_GROUPS = "not measured: a group's completions lie on several ranks"
UNSCORED = "not measured: no function gave some completion a reward, which changes its group's baseline"


class Scored:
    """Log-probs of a whole generation, in the order in which the trainer asks for them: policy, then reference."""

    def __init__(self) -> None:
        self._logps: list[Tensor] = []
        self._open = False

    def begin(self) -> None:
        self._logps, self._open = [], True

    def keep(self, logp: Tensor) -> None:
        if self._open and len(self._logps) < 2:
            self._logps.append(logp.detach())

    def take(self) -> tuple[Tensor, Tensor] | None:
        """Both, and lets them go."""
        found, self._logps, self._open = self._logps, [], False
        return (found[0], found[1]) if len(found) == 2 else None


def pieces(
    trainer: Any,
    scored: tuple[Tensor, Tensor],
    shown: Mapping[str, Any],
    totals: Floats | None,
    *,
    first: int,
    vocabulary: int | None,
) -> Iterator[Piece]:
    """``scored`` (B, T) log-probs of this rank's completions, ``totals`` all ranks' rewards before the penalty."""
    (logp, ref), mask = scored, measure.loss_mask(shown)
    if mask is None or logp.shape != mask.shape or ref.shape != mask.shape:
        return
    where: dict[str, Any] = {"ids": shown["completion_ids"], "sample_offset": first}
    yield "the reference's log-probs", partial(measure.census_of, {"ref": ref, "old": logp}, mask, where)
    yield "ratios to the reference", partial(ratios.measure_reference, logp, ref, mask, **where)
    yield "KL in the reward", partial(_kl, trainer, logp, ref, mask, where, vocabulary)
    advantages = shown.get("advantages")
    reason = _no_share(trainer, advantages, totals, first)
    if reason or advantages is None:
        yield "KL in the advantages", partial(absent, SHARES, reason, logp)
        return
    yield "KL in the advantages", partial(_share, trainer, logp, ref, mask, advantages)


def _kl(
    trainer: Any, logp: Tensor, ref: Tensor, mask: Tensor, where: Mapping[str, Any], vocabulary: int | None
) -> Reduction:
    one = logp.new_ones((1, 1))
    coefficient = float(facts.kl_coef(trainer) or 0.0)
    found = kl.measure_kl(logp, ref, mask, one, coef=coefficient, estimator="k1", vocabulary=vocabulary, **where)
    return replace(found, build=partial(_without_pull, found.build))


def _without_pull(build: Callable[[Sequence[Floats]], Tally], parts: Sequence[Floats]) -> Tally:
    """No gradient of it is taken: it pulls by the advantages."""
    tally = build(parts)
    return replace(tally, sums={**tally.sums, "kl.pull_sq": 0.0})


def _no_share(trainer: Any, advantages: Tensor | None, totals: Floats | None, first: int) -> str:
    group = int(getattr(trainer, "num_generations", 0) or 0)
    if getattr(trainer.args, "normalize_advantages", False):
        return NORMALISED
    if advantages is None or totals is None or group < 2 or first % group or advantages.shape[0] % group:
        return CUT_GROUPS
    return UNSCORED if np.isnan(totals).any() else ""


def _share(trainer: Any, logp: Tensor, ref: Tensor, mask: Tensor, advantages: Tensor) -> Reduction:
    """A completion's advantage is that of its reward, less that of its penalty: both lean on their group."""
    group, coefficient = int(trainer.num_generations), float(facts.kl_coef(trainer) or 0.0)
    tokens = mask.double().sum(1)
    penalty = (coefficient * ((logp - ref).double() * mask).sum(1)).reshape(-1, group)
    others = (penalty.sum(1, keepdim=True) - penalty) / (group - 1)
    of_kl = (others - penalty).reshape(-1)
    of_reward = advantages.double() - of_kl
    squares = torch.stack([(tokens * of_kl.square()).sum(), (tokens * of_reward.square()).sum()])
    return Reduction(parts=(squares,), build=_pulls)


def _pulls(parts: Sequence[Floats]) -> Tally:
    return Tally(sums={"kl.pull_sq": float(parts[0][0]), "policy.pull_sq": float(parts[0][1])})
