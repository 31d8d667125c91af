"""Advantages of completions that the length limit cut: what they would have become their reward hardly says."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rlvitals import notices
from rlvitals.guard import Guard
from rlvitals.probes.arguments import ProbeArgumentError, ShapeError, written
from rlvitals.probes.arrays import is_tensor
from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.tally import Tally

if TYPE_CHECKING:
    from torch import Tensor

A = TypeVar("A")

_BETTER = (
    "mask_truncated_completions=True of the trainer is the better way to give truncated completions no weight: it "
    "takes their tokens out of the KL term and of the loss's divisor too, this guard takes the advantage only"
)


def scale_truncated(advantages: A, truncated: Any, *, weight: float = 0.0) -> A:
    """``advantages`` (B,) or (B, T) where those of ``truncated`` (B,) completions count ``weight`` (0 … 1) times.

    A new tensor for a tensor, a new array for anything else; with weight 0 even a NaN becomes 0. Raises
    `ProbeArgumentError` for a weight outside 0 … 1, `ShapeError` where there is not one flag for each completion.
    """
    _check_weight(weight)
    if is_tensor(advantages):
        tensor: A = _scale_tensor(advantages, truncated, weight)
        return tensor
    values = np.asarray(advantages, np.float64)
    flags = np.asarray(truncated).astype(bool).reshape(-1)
    _check_rows(values.shape, flags.shape)
    cut = np.broadcast_to(flags.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
    size = np.abs(np.where(np.isfinite(values), values, 0.0))
    _tell(int(flags.sum()), float(size.sum()), float(size[cut].sum()) * (1 - weight))
    array: A = np.where(cut, values * weight if weight else 0.0, values)  # type: ignore[assignment]
    return array


def guard_truncated(trainer: Any, *, weight: float = 0.0) -> None:
    """Switches the guard on for a TRL trainer of the GRPO kind; call it before ``rlvitals.attach(trainer)``.

    Nothing is changed where the trainer masks truncated completions itself. Raises `ProbeArgumentError` for a
    weight outside 0 … 1, and TypeError for a trainer without advantages of completions.
    """
    _check_weight(weight)
    if getattr(trainer, "mask_truncated_completions", False):
        notices.once("guard:truncated", "mask_truncated_completions is on: the guard for truncated ones is not")
        return
    if weight == 0 and hasattr(trainer, "mask_truncated_completions"):
        notices.once("guard:truncated", _BETTER)
    original = getattr(trainer, "_generate_and_score_completions", None)
    if original is None:
        raise TypeError(f"{type(trainer).__name__} does not compute advantages of completions")

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        with Guard("the guard for truncated completions"):
            cut = _truncated(result, trainer)
            result["advantages"] = scale_truncated(result["advantages"], cut, weight=weight)
        return result

    trainer._generate_and_score_completions = guarded


def _truncated(result: Any, trainer: Any) -> Tensor:
    """(B,) whether a completion's last token ends nothing and the limit is reached. Waits for no device."""
    import torch

    from rlvitals.integrations.trl import facts

    ids, mask = result["completion_ids"], result["completion_mask"]
    lengths = (mask != 0).sum(1)
    last = ids.gather(1, (lengths - 1).clamp_min(0)[:, None])[:, 0]
    known = facts.stop_ids(trainer)
    if not known:
        raise ProbeArgumentError("trainer", "ids that end a completion", "none")
    stops = torch.tensor(sorted(known), device=ids.device)
    cap = getattr(trainer, "max_completion_length", None) or ids.shape[1]
    cut: Tensor = ~torch.isin(last, stops) & (lengths >= cap)
    return cut


def _scale_tensor(advantages: Any, truncated: Any, weight: float) -> Any:
    import torch

    from rlvitals.probes.reduction import Reduction

    flags = torch.as_tensor(truncated, device=advantages.device).bool().reshape(-1)
    _check_rows(advantages.shape, flags.shape)
    cut = flags.view(-1, *[1] * (advantages.dim() - 1))
    with Guard("telling of truncated advantages"):
        size = advantages.detach().double().nan_to_num(0.0, 0.0, 0.0).abs()
        found = torch.stack([flags.sum().double(), size.sum(), (size * cut).sum() * (1 - weight)])
        LEDGER.launch(Reduction(parts=(found,), build=lambda parts: _tally(*parts[0].tolist())))
    return torch.where(cut, advantages * weight if weight else torch.zeros_like(advantages), advantages)


def _tell(count: int, total: float, removed: float) -> None:
    with Guard("telling of truncated advantages"):
        LEDGER.put(_tally(count, total, removed))


def _tally(count: float, total: float, removed: float) -> Tally:
    return Tally(
        counts={"guard.truncated": int(count)},
        sums={"guard.advantage": total, "guard.advantage_removed": removed},
    )


def _check_weight(weight: float) -> None:
    if not 0.0 <= weight <= 1.0:
        raise ProbeArgumentError("weight", "0 … 1", str(weight))


def _check_rows(shape: Any, flags: Any) -> None:
    if not shape or tuple(flags) != tuple(shape[:1]):
        raise ShapeError("truncated", written(shape[:1]), written(flags))
