"""Where a process stands among slime's training ranks, and the group in which they speak to each other."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from rlvitals.guard import Guard
from rlvitals.integrations.ranks import Ranks


class Place:
    """``counts``: this rank's tensors are its own alone (the others of a tensor-parallel group hold the same, and
    only the last pipeline stage has any). ``main``: the one rank that logs, as slime has it.
    """

    def __init__(self) -> None:
        self.counts = self.main = True
        self._parallel: Any = None
        try:
            from megatron.core import mpu
        except ImportError:
            return
        last = mpu.get_pipeline_model_parallel_world_size() - 1
        self.counts = mpu.get_tensor_model_parallel_rank() == 0 and mpu.get_pipeline_model_parallel_rank() == last
        self.main = self.counts and mpu.get_data_parallel_rank(with_context_parallel=True) == 0
        self._parallel = mpu

    def part(self, tensor: Tensor, total: int, size: int) -> Tensor:
        """What this context-parallel rank holds of a response-long tensor."""
        if self._parallel is None or self._parallel.get_context_parallel_world_size() == 1:
            return tensor
        from slime.backends.megatron_utils.cp_utils import slice_log_prob_with_cp

        found: Tensor = slice_log_prob_with_cp(tensor, total, size)
        return found


class SlimeRanks(Ranks):
    """All ranks, in slime's own gloo group: it destroys and remakes its groups between rollouts, so the group is
    asked for at each use. The rank that logs counts as 0.
    """

    def __init__(self, first: int) -> None:
        self._gone = False
        super().__init__(gloo_group(), first)

    @property
    def _group(self) -> Any:
        return None if self._gone else gloo_group()

    @_group.setter
    def _group(self, group: Any) -> None:
        self._gone = group is None

    def leave(self) -> None:
        """The group is slime's."""
        self._part()


def gloo_group() -> Any:
    """slime's group of all ranks; None where there is no such thing."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    from slime.utils.distributed_utils import get_gloo_group

    return get_gloo_group()


def meet(place: Place) -> Ranks:
    """Collective: finds the rank that logs. Alone where the ranks cannot find each other."""
    with Guard("meeting slime's ranks"):
        group = gloo_group()
        if group is None:
            return Ranks()
        word = torch.tensor([dist.get_rank() if place.main else -1])
        dist.all_reduce(word, op=dist.ReduceOp.MAX, group=group)
        return SlimeRanks(max(int(word[0]), 0))
    return Ranks()


def all_well(ranks: Ranks, well: bool) -> bool:
    """Collective. Whether all ranks are: what one rank could not open, none of them uses."""
    if ranks.alone:
        return well
    word = torch.tensor([int(well)])
    with Guard("asking slime's ranks") as watch:
        dist.all_reduce(word, op=dist.ReduceOp.MIN, group=gloo_group())
    return bool(word[0]) and not watch.failed
