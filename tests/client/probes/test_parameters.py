"""Gradients by parameter of small real models."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rlvitals.probes import parameters
from rlvitals.probes.finish.gradient import largest_parameters
from rlvitals.probes.gradients import tally_gradient_norm
from rlvitals.probes.parameters import measure_parameter_gradients, plain_name, tally_parameter_gradients
from tests.client.probes.test_transfers import waits

NAN, INF = math.nan, math.inf
KINDS = (torch.float32, torch.bfloat16, torch.float16, torch.float32)
TOP, NONFINITE = "gradient.top_parameter_share", "gradient.nonfinite_parameters"


def trained() -> nn.Module:
    """A transformer block after one backward pass."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Embedding(11, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 11)
    )
    model(torch.arange(11).reshape(1, 11)).logsumexp(-1).sum().backward()
    return model


def named(**gradients: torch.Tensor | None) -> list[tuple[str, nn.Parameter]]:
    found = []
    for name, gradient in gradients.items():
        parameter = nn.Parameter(torch.zeros_like(gradient) if gradient is not None else torch.zeros(1))
        parameter.grad = gradient
        found.append((name, parameter))
    return found


def test_norm_and_largest_parameters_are_those_that_torch_computes() -> None:
    model = trained()
    measured = tally_parameter_gradients(model.named_parameters()).measured()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    total = math.sqrt(sum(g.double().square().sum().item() for g in gradients.values()))
    assert measured.values["gradient.norm"] == pytest.approx(total, rel=1e-6)
    owner = max(gradients, key=lambda name: gradients[name].norm().item())
    assert measured.extremes[TOP].token == owner
    assert measured.values[TOP] == pytest.approx((gradients[owner].norm().item() / total) ** 2, rel=1e-6)
    assert measured.values[NONFINITE] == 0


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_the_parameter_whose_gradient_is_not_finite_is_named_first(bad: float) -> None:
    model = trained()
    for parameter in (model[1].linear1.weight, model[2].bias):
        parameter.grad.view(-1)[3] = bad
    measured = tally_parameter_gradients(model.named_parameters()).measured()
    first = measured.extremes[NONFINITE]
    assert (measured.values[NONFINITE], first.token, repr(first.value)) == (2, "1.linear1.weight", repr(bad))
    assert not math.isfinite(measured.values["gradient.norm"])
    assert measured.extremes[TOP].token not in ("1.linear1.weight", "2.bias")


def test_shares_of_the_largest_are_of_the_squared_norm() -> None:
    tally = tally_parameter_gradients(named(a=torch.tensor([3.0]), b=torch.tensor([4.0, 0.0]), c=torch.zeros(2)))
    assert largest_parameters(tally, 2) == (("b", 0.64), ("a", 0.36))
    assert tally.measured().values["gradient.norm"] == 5.0


def test_a_norm_that_overflows_float32_is_no_non_finite_gradient() -> None:
    measured = tally_parameter_gradients(named(a=torch.full((4,), 1e30), b=torch.ones(1))).measured()
    assert (measured.values[NONFINITE], measured.values["gradient.norm"]) == (0, pytest.approx(2e30))


def test_half_precision_gradients_are_summed_in_float32() -> None:
    halves = torch.full((2, 2), 60000.0, dtype=torch.float16)
    brains = torch.full((300,), 1.0, dtype=torch.bfloat16)
    measured = tally_parameter_gradients(
        named(a=halves, b=brains, c=torch.ones(1, dtype=torch.float64))
    ).measured()
    assert measured.values["gradient.norm"] == pytest.approx(math.sqrt(120000.0**2 + 301))


def test_without_gradients_the_share_is_missing_and_all_zero_is_another_reason() -> None:
    none = tally_parameter_gradients(named(a=None)).measured()
    assert none.missing == {"gradient.norm": "no parameter has a gradient", TOP: "no parameter has a gradient"}
    zero = tally_parameter_gradients(named(a=torch.zeros(2), b=torch.zeros(0))).measured()
    assert (zero.missing[TOP], zero.values["gradient.norm"]) == ("all finite gradients are zero", 0.0)


def test_only_the_largest_names_are_kept_but_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "NAMED_MAX", 2)
    tally = tally_parameter_gradients(named(**{f"p{i}": torch.tensor([float(i)]) for i in range(5)}))
    assert [name for name, _ in largest_parameters(tally)] == ["p4", "p3"]
    assert tally.measured().values["gradient.norm"] == pytest.approx(math.sqrt(30))


def test_a_sparse_gradient_counts_its_rows_once() -> None:
    table = nn.Embedding(5, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()
    measured = tally_parameter_gradients(table.named_parameters()).measured()
    assert measured.values["gradient.norm"] == pytest.approx(math.sqrt(4 + 4 + 1 + 1))


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0.0, 0.5, -2.0, 1e30, NAN, INF]), max_size=6), st.integers(0, 6))
def test_shards_add_up(values: list[float], cut: int) -> None:
    pairs = named(**{f"p{i}": torch.tensor([value], dtype=torch.float64) for i, value in enumerate(values)})
    whole = tally_parameter_gradients(pairs)
    parts = tally_parameter_gradients(pairs[cut:]) + tally_parameter_gradients(pairs[:cut])
    assert parts.counts == whole.counts
    assert parts.measured().values == pytest.approx(whole.measured().values, nan_ok=True)
    assert largest_parameters(parts) == largest_parameters(whole)


@pytest.mark.parametrize(
    "name",
    [
        "module.layers.0.weight",
        "_orig_mod.layers.0.weight",
        "_fsdp_wrapped_module.layers.0._fsdp_wrapped_module.weight",
    ],
)
def test_wrappers_are_left_out_of_names(name: str) -> None:
    assert plain_name(name) == "layers.0.weight"
    assert plain_name("my_module.weight") == "my_module.weight"


def test_no_gradient_is_kept_alive() -> None:
    pairs = named(a=torch.ones(3))
    pending = measure_parameter_gradients(pairs)
    gradient = weakref.ref(pairs[0][1].grad)
    pairs[0][1].grad = None
    gc.collect()
    assert gradient() is None
    assert pending.tally().measured().values["gradient.norm"] == pytest.approx(math.sqrt(3))


def test_a_device_is_asked_for_nothing() -> None:
    pairs = named(**{f"p{i}": torch.empty(3, device="meta", dtype=kind) for i, kind in enumerate(KINDS)})
    with waits() as waited:
        measure_parameter_gradients(pairs)
    assert waited == []


def test_a_non_finite_gradient_norm_is_shown_with_the_parameter_that_broke_it() -> None:
    pairs = named(good=torch.ones(2), bad=torch.tensor([1.0, NAN]))
    norm = torch.nn.utils.get_total_norm([parameter.grad for _, parameter in pairs])
    measured = (tally_parameter_gradients(pairs) + tally_gradient_norm(norm)).measured()
    assert measured.values["numerics.nonfinite_gradient"] == 1
    assert measured.extremes["numerics.nonfinite_gradient"].token == "bad"
    assert "numerics.nonfinite_gradient" not in tally_parameter_gradients(pairs).measured().extremes


def test_of_a_long_name_the_end_is_shown() -> None:
    name = "base_model.model.model.layers.27.self_attn.q_proj.modules_to_save.default.weight"
    token = tally_parameter_gradients(named(**{name: torch.ones(1)})).measured().extremes[TOP].token
    assert token is not None
    assert len(token) == 64
    assert name.endswith(token[1:])
