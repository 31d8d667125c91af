"""The KL term's gradient by the parameters: exact, costly, and so only every n-th step and only if asked for.

The norm by the log-probs (`kl`) is free and its trend carries over, its absolute value does not: between the two
lies the model's Jacobian. This one costs a forward and a backward pass of the KL term.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arguments import check_at_least
from rlvitals.probes.finish.policy import NO_PARAMETERS
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

METRIC = "kl.parameter_grad_norm"
BETWEEN = "not measured on this step: every {every} steps only"
UNTRAINED = "not measured: no parameter is trained"
CONSTANT = "not measured: the KL term does not depend on the parameters"
SHARDED = "not measured: {by} holds a part of each parameter only, and gathers it in its own backward pass"


@uncompiled
def tally_parameter_gradient(
    parameters: Iterable[Tensor], kl_term: Callable[[], Tensor], *, step: int, every: int = 0
) -> Tally:
    """Tallies kl.parameter_grad_norm on every ``every``-th step (0 = never), else says why it is missing.

    ``kl_term`` is called at most once, under `torch.enable_grad`, and returns the KL term of the loss as a scalar,
    its coefficient included, from a forward pass of its own: its graph is walked and freed here. ``.grad`` is
    neither read nor written, and the states of torch's, NumPy's and Python's generators are as before (dropout
    draws from them). Under DeepSpeed ZeRO-3 and FSDP it is refused with a reason and ``kl_term`` is not called.
    The norm is that of this process and of what it was given: of several micro-batches or ranks the largest is
    kept. It waits for a GPU.
    """
    check_at_least("every", every, 0)
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    reason = _reason(trained, step, every)
    if reason:
        return Tally.absent((METRIC,), reason)
    with _generators_kept(trained), torch.enable_grad():
        term = kl_term()
        if not term.requires_grad:
            return Tally.absent((METRIC,), CONSTANT)
        gradients = torch.autograd.grad(term, trained, allow_unused=True)
    norms = [gradient.detach().double().norm() for gradient in gradients if gradient is not None]
    if not norms:
        return Tally.absent((METRIC,), CONSTANT)
    total = torch.stack([norm.to(norms[0].device) for norm in norms]).norm().item()
    return Tally(maxima={METRIC: Extreme(value=total)})


def sharded_by(parameters: Iterable[Any]) -> str | None:
    """Who holds only a part of a parameter here: DeepSpeed ZeRO-3, FSDP, or None."""
    for parameter in parameters:
        if hasattr(parameter, "ds_id"):
            return "DeepSpeed ZeRO-3"
        if any(hasattr(parameter, mark) for mark in ("_fsdp_flattened", "_is_flat_param", "placements")):
            return "FSDP"
    return None


def _reason(trained: list[Tensor], step: int, every: int) -> str:
    if not every:
        return NO_PARAMETERS
    if step % every:
        return BETWEEN.format(every=every)
    by = sharded_by(trained)
    if by:
        return SHARDED.format(by=by)
    return "" if trained else UNTRAINED


@contextmanager
def _generators_kept(parameters: list[Tensor]) -> Iterator[None]:
    """Gives every generator that a forward pass may draw from its state back."""
    devices = sorted({parameter.get_device() for parameter in parameters if parameter.is_cuda})
    python, legacy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
