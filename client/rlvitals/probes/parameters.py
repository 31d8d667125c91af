"""Parameters by name: whose gradient is the largest, and whose was the first that is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.arrays import Floats
from rlvitals.probes.finish.gradient import NONFINITE, SQUARE, shown
from rlvitals.probes.reduction import Reduction, moved, on_host
from rlvitals.probes.tally import Tally
from rlvitals.probes.uncompiled import uncompiled

Named: TypeAlias = Iterable[tuple[str, Tensor]]

NAMED_MAX = 512
_WRAPPERS = ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.", "module.")


def plain_name(name: str) -> str:
    """The parameter's name in the user's own model, without what wrappers put into it."""
    for wrapper in _WRAPPERS[:-1]:
        name = name.replace(wrapper, "")
    return name.removeprefix(_WRAPPERS[-1])


def tally_parameter_gradients(named_parameters: Named) -> Tally:
    """As `measure_parameter_gradients`; on a GPU this waits."""
    return measure_parameter_gradients(named_parameters).tally()


@uncompiled
def measure_parameter_gradients(named_parameters: Named) -> Reduction:
    """Launches the gradient norm of each parameter and returns at once; call it after unscaling, before clipping.

    ``named_parameters`` as a module gives them; those without a gradient are left out. Norms are taken where the
    gradients are, many tensors in one launch, and come back in one copy. A non-finite norm counts as a non-finite
    gradient of that parameter; on a CPU it is looked at again, so that the kind is told and an overflow of the
    norm itself is not taken for one. Of sharded gradients the local part is measured: add up the ranks' tallies.
    """
    names, gradients = [], []
    for name, parameter in named_parameters:
        gradient = _local(parameter.grad)
        if gradient is not None:
            names.append(plain_name(name))
            gradients.append(gradient)
    if not gradients:
        return Reduction(parts=(torch.zeros(0, dtype=torch.float64),), build=partial(_build, ()))
    norms = norms_of(gradients)
    kinds = norms
    if on_host(norms):
        kinds = norms.clone()
        for place in (~norms.isfinite()).nonzero().view(-1).tolist():
            norms[place], kinds[place] = _looked_at_again(gradients[place])
    return Reduction(parts=(torch.cat([norms, kinds]),), build=partial(_build, tuple(names)))


def norms_of(tensors: Sequence[Tensor]) -> Tensor:
    """(P,) L2 norms as doubles on the first tensor's device, summed in float32 or better; nothing waits."""
    home = tensors[0].device
    norms: list[Tensor] = [torch.empty(0)] * len(tensors)
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for place, tensor in enumerate(tensors):
        kinds.setdefault((tensor.device, tensor.dtype), []).append(place)
    for places in kinds.values():
        found = _foreach_norms([tensors[place] for place in places])
        for place, norm in zip(places, found, strict=True):
            norms[place] = moved(norm, home)
    return torch.stack([norm.double() for norm in norms])


def _foreach_norms(tensors: list[Tensor]) -> Sequence[Tensor]:
    if tensors[0].dtype in (torch.float32, torch.float64):
        return torch._foreach_norm(tensors, 2)
    try:
        return torch._foreach_norm(tensors, 2, dtype=torch.float32)
    except TypeError:  # a torch whose foreach norm rounds to the tensors' own dtype
        return [torch.linalg.vector_norm(tensor, dtype=torch.float32) for tensor in tensors]


def _local(gradient: Tensor | None) -> Tensor | None:
    if gradient is None:
        return None
    shard = getattr(gradient, "to_local", None)
    local: Tensor = (gradient if shard is None else shard()).detach()
    return local.coalesce().values() if local.is_sparse else local


def _looked_at_again(gradient: Tensor) -> tuple[float, float]:
    """The norm in double precision, and the first value that is not finite (0 where all are)."""
    flat = gradient.reshape(-1)
    bad = ~flat.isfinite()
    norm = torch.linalg.vector_norm(flat.double()).item()
    return norm, flat[bad][0].item() if bad.any() else 0.0


def _build(names: Sequence[str], parts: Sequence[Floats]) -> Tally:
    count = len(names)
    norms, kinds = parts[0][:count].tolist(), parts[0][count:].tolist()
    squares = {
        name: norm * norm for name, norm, kind in zip(names, norms, kinds, strict=True) if math.isfinite(kind)
    }
    largest = sorted(squares, key=lambda name: -squares[name])[:NAMED_MAX]
    bad = [(place, kind) for place, kind in enumerate(kinds) if not math.isfinite(kind)]
    tally = Tally(
        counts={"gradient.parameters": count, NONFINITE: len(bad)},
        sums={
            "gradient.norm_sq": math.fsum(squares.values()) if not bad else sum(norm * norm for norm in norms),
            "gradient.finite_sq": math.fsum(squares.values()),
            **{SQUARE + name: squares[name] for name in largest},
        },
    )
    if not bad:
        return tally
    place, kind = bad[0]
    first = Extreme(value=kind, position=place, token=shown(names[place]))
    return tally + Tally(firsts={NONFINITE: first})
