"""The KL gradient by the parameters: exact where it is asked for, refused where parameters are sharded."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rlvitals.probes.parameter_gradient import METRIC, sharded_by, tally_parameter_gradient

COEF = 0.04


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 6)
        self.drop, self.unused = nn.Dropout(0.5), nn.Parameter(torch.ones(3))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(torch.tanh(self.drop(self.body(x))))
        return logits


def kl_of(model: Model) -> Tensor:
    draw = torch.Generator().manual_seed(1)
    logp = torch.log_softmax(model(torch.randn(5, 4, generator=draw)), -1)[:, 0]
    distance = torch.full_like(logp, -1.0).detach() - logp
    return COEF * (distance.exp() - 1 - distance).mean()


def test_the_norm_is_autograds_and_nothing_else_is_changed() -> None:
    model = Model()
    model.head.weight.grad = torch.full_like(model.head.weight, 7.0)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    measured = tally_parameter_gradient(model.parameters(), lambda: kl_of(model), step=10, every=5).measured()
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])
    assert random.getstate() == states[2]
    grads = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert grads == {"head.weight"}
    assert bool((model.head.weight.grad == 7.0).all())
    # dropout drew what it would have drawn without the probe
    model.head.weight.grad = None
    kl_of(model).backward()
    exact = math.sqrt(sum(float((p.grad**2).sum()) for p in model.parameters() if p.grad is not None))
    assert measured.values == {METRIC: pytest.approx(exact, rel=1e-6)}


def test_it_also_runs_where_gradients_are_off() -> None:
    model = Model().eval()
    with torch.no_grad():
        tally = tally_parameter_gradient(model.parameters(), lambda: kl_of(model), step=0, every=1)
        assert not torch.is_grad_enabled()
    assert tally.measured().values[METRIC] > 0


def refuse() -> Tensor:
    raise AssertionError("the KL term was asked for")


@pytest.mark.parametrize(
    ("step", "every", "reason"), [(3, 0, "off unless asked for"), (3, 2, "every 2 steps only")]
)
def test_it_is_off_unless_asked_for_and_then_only_every_nth_step(step: int, every: int, reason: str) -> None:
    measured = tally_parameter_gradient(Model().parameters(), refuse, step=step, every=every).measured()
    assert not measured.values
    assert reason in measured.missing[METRIC]


@pytest.mark.parametrize(
    ("mark", "by"),
    [
        ("ds_id", "DeepSpeed ZeRO-3"),
        ("_fsdp_flattened", "FSDP"),
        ("_is_flat_param", "FSDP"),
        ("placements", "FSDP"),
    ],
)
def test_sharded_parameters_are_refused_with_a_reason(mark: str, by: str) -> None:
    model = Model()
    setattr(model.head.weight, mark, True)
    assert sharded_by(model.parameters()) == by
    measured = tally_parameter_gradient(model.parameters(), refuse, step=0, every=1).measured()
    assert by in measured.missing[METRIC]
    assert sharded_by(Model().parameters()) is None


def test_a_term_that_does_not_depend_on_the_parameters_has_no_norm_and_not_zero() -> None:
    model = Model()
    for term in (lambda: torch.tensor(1.0), lambda: torch.ones(3, requires_grad=True).sum()):
        measured = tally_parameter_gradient(model.parameters(), term, step=0, every=1).measured()
        assert "does not depend" in measured.missing[METRIC]
    assert "no parameter" in tally_parameter_gradient([], refuse, step=0, every=1).measured().missing[METRIC]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_told_as_it_is(bad: float) -> None:
    weight = nn.Parameter(torch.ones(2))
    found = tally_parameter_gradient([weight], lambda: (weight * bad).sum(), step=0, every=1).measured().values
    assert math.isnan(found[METRIC]) if math.isnan(bad) else found[METRIC] == math.inf


def test_of_several_micro_batches_the_largest_is_kept() -> None:
    weight = nn.Parameter(torch.ones(2))
    tallies = [
        tally_parameter_gradient([weight], lambda k=k: (weight * k).sum(), step=0, every=1)  # type: ignore[misc]
        for k in (1.0, 3.0, 2.0)
    ]
    assert sum(tallies).measured().values[METRIC] == pytest.approx(3 * math.sqrt(2))  # type: ignore[attr-defined]


def test_the_real_fsdp_is_recognized_and_data_parallel_is_measured() -> None:
    code = """
import warnings
warnings.simplefilter("ignore")
import torch, torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from rlvitals.probes.parameter_gradient import sharded_by, tally_parameter_gradient
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
sharded = nn.Linear(4, 4)
fully_shard(sharded, mesh=init_device_mesh("cpu", (1,)))
assert sharded_by(sharded.parameters()) == "FSDP"
for kept in (False, True):
    flat = FullyShardedDataParallel(nn.Linear(4, 4), use_orig_params=kept, device_id=torch.device("cpu"))
    assert sharded_by(flat.parameters()) == "FSDP", kept
whole = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
term = lambda: whole.module(torch.ones(2, 4)).square().sum()
measured = tally_parameter_gradient(whole.parameters(), term, step=0, every=1).measured()
assert measured.values["kl.parameter_grad_norm"] > 0
dist.destroy_process_group()
"""
    if not torch.distributed.is_available():
        pytest.skip("NO REAL FSDP: this torch has no torch.distributed")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
