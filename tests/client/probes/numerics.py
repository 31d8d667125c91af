"""A tally of all that the numeric probes count, for the tests of the registry."""

from __future__ import annotations

import torch
from torch import nn

from rlvitals.probes.logits import tally_logits
from rlvitals.probes.nonfinite import tally_nonfinite, tally_nonfinite_ratios
from rlvitals.probes.parameters import tally_parameter_gradients
from rlvitals.probes.tally import Tally
from rlvitals.probes.updates import measure_scaler, measure_update, sample_weights


def everything_numeric(mask_value: int) -> Tally:
    """One optimizer step of a linear layer, and a batch of which ``mask_value`` says whether any token counts."""
    mask, logp = torch.full((2, 3), mask_value), torch.zeros(2, 3)
    layer = nn.Linear(3, 2)
    nn.init.constant_(layer.weight, 1.0)
    layer(torch.ones(1, 3)).sum().backward()
    before = sample_weights(layer.named_parameters())
    torch.optim.SGD(layer.parameters(), 0.1).step()
    parts = (
        tally_logits(torch.arange(24.0).reshape(2, 3, 4), mask),
        tally_nonfinite(rollout=logp, mask=mask),
        tally_nonfinite_ratios(logp, logp, mask),
        tally_parameter_gradients(layer.named_parameters()),
        measure_update(before, layer.named_parameters()).tally(),
        measure_scaler(512.0, before=512.0).tally(),
    )
    return sum(parts, Tally.zero())
