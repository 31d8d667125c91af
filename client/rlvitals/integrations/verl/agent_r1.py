"""Batches of agents, Agent-R1's among them: who wrote a token, and which rows are steps of one trajectory.

Agent-R1 (https://github.com/AgentR1/Agent-R1) trains with verl's V0 loop. Its main branch makes one row of each
step of a trajectory and fills batches up with rows of ``sample_mask`` 0; its legacy branch has whole conversations
with an ``action_mask`` (1: the policy's token, 0: a tool's), which its loss counts by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

UNLIKELY = math.log(0.5)
"""A sampler that was certain of a token (log-prob 0) and a policy that gives it less than this do not agree."""
NEARBY = 1.0
AGREEING_SHARE = 0.9
"""Elsewhere so many tokens' two log-probs are within `NEARBY`, else the sampler is another policy altogether."""
TOLD_SHARE = 0.5
"""A sampler that is certain of most tokens is greedy, or shows log-probs of a distribution that was cut."""


def is_legacy(trainer: Any) -> bool:
    """A trainer of Agent-R1's legacy branch, whose loss counts by the action mask."""
    return type(trainer).__module__.startswith("agent_r1.src")


def written(columns: Mapping[str, Any], mask: Tensor) -> Tensor | None:
    """(B, R) what the policy chose among the tokens of the loss ``mask`` (B, R); None where nobody says it.

    An action mask beside the loss's own says it. Else the sampler does, which has no log-prob for what was
    appended to its answer: verl fills those places with 0. Of such places only those count that end what the loss
    counts of a turn, that the policy itself finds unlikely, and that lie among log-probs which agree elsewhere.
    """
    actions = columns.get("action_mask")
    if actions is not None and actions is not mask:
        chosen: Tensor = actions.bool()
        return chosen
    sampled, old = columns.get("rollout_log_probs"), columns.get("old_log_probs")
    if sampled is None or old is None or sampled is old:
        return None
    counted = mask.bool()
    silent = (sampled == 0) & counted
    told = counted & ~silent
    if told.sum() < TOLD_SHARE * counted.sum():
        return None
    apart = (old - sampled)[told].abs()
    apart = apart[apart.isfinite()]
    if (apart <= NEARBY).sum() < AGREEING_SHARE * len(apart):
        return None
    forced: Tensor = silent & _at_an_end(counted, told) & (old < UNLIKELY)
    return counted & ~forced


def _at_an_end(counted: Tensor, told: Tensor) -> Tensor:
    """(B, R) places with none of ``told`` between them and the end of their run of ``counted`` places."""
    width = counted.shape[1]
    places = torch.arange(width, device=counted.device).expand_as(counted)
    ends = counted & ~torch.nn.functional.pad(counted[:, 1:], (0, 1))
    return _next(ends, places, width) < _next(told, places, width)


def _next(wanted: Tensor, places: Tensor, width: int) -> Tensor:
    """(B, R) the first wanted place from each on, ``width`` where there is none."""
    found = torch.where(wanted, places, torch.full_like(places, width))
    return found.flip(1).cummin(1).values.flip(1)


def trajectory_scores(columns: Mapping[str, Any]) -> dict[str, Tensor]:
    """Each row's score (B,): the sum of its trajectory's, as advantages see it; {} where a row is all of it."""
    uids, scores = columns.get("trajectory_uids"), columns.get("token_level_scores")
    if uids is None or scores is None:
        return {}
    names, numbers = np.unique(np.asarray(uids).astype(str), return_inverse=True)
    if len(names) == len(scores):
        return {}
    rows = scores.sum(-1).double() if scores.dim() > 1 else scores.double()
    keep = columns.get("sample_mask")
    if keep is not None:
        rows = torch.where(keep.bool().reshape(-1), rows, torch.zeros_like(rows))
    place = torch.from_numpy(numbers.reshape(-1)).to(rows.device)
    totals = torch.zeros(len(names), dtype=rows.dtype, device=rows.device).index_add_(0, place, rows)
    return {"token_level_scores": totals[place]}
