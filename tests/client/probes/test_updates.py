"""What real optimizers do to the weights."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from torch import nn

from rlvitals.probes.tally import Tally
from rlvitals.probes.updates import measure_scaler, measure_update, sample_weights
from tests.client.probes.test_transfers import waits

NAN, INF = math.nan, math.inf
RATIO, SAME, SKIPPED = "gradient.update_ratio", "gradient.unchanged_share", "gradient.skipped_steps"


def model_of(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 2)).to(dtype)


def after(model: nn.Module, rate: float) -> Tally:
    """One step of plain gradient descent, seen whole."""
    before = sample_weights(model.named_parameters())
    model(torch.ones(3, 6, dtype=next(model.parameters()).dtype)).square().sum().backward()
    torch.optim.SGD(model.parameters(), rate).step()
    return measure_update(before, model.named_parameters()).tally()


def test_the_ratio_is_that_of_the_whole_model_where_all_of_it_is_sampled() -> None:
    model = model_of()
    old = torch.cat([p.detach().reshape(-1).clone() for p in model.parameters()]).double()
    values = after(model, 0.01).measured().values
    new = torch.cat([p.detach().reshape(-1) for p in model.parameters()]).double()
    assert values[RATIO] == pytest.approx(((new - old).norm() / old.norm()).item())
    assert values[SAME] == (new == old).double().mean().item()
    assert values[SKIPPED] == 0


def test_a_step_that_changes_nothing_is_skipped() -> None:
    values = after(model_of(), 0.0).measured().values
    assert (values[RATIO], values[SAME], values[SKIPPED]) == (0.0, 1.0, 1.0)


def test_updates_that_bfloat16_rounds_away_are_seen() -> None:
    lost = after(model_of(torch.bfloat16), 1e-6).measured().values
    assert lost[SAME] > 0.7
    assert after(model_of(torch.float32), 1e-6).measured().values[SAME] < lost[SAME]


def test_non_finite_weights_are_counted_named_and_left_out() -> None:
    model = model_of()
    before = sample_weights(model.named_parameters())
    with torch.no_grad():
        model[1].weight[2] = NAN
        model[2].weight[0, 0] = -INF
        model[0].bias.add_(1.0)
    measured = measure_update(before, model.named_parameters()).tally().measured()
    first = measured.extremes["numerics.nonfinite_weights"]
    assert measured.values["numerics.nonfinite_weights"] == 2
    assert (first.token, repr(first.value)) == ("1.weight", "nan")
    assert math.isfinite(measured.values[RATIO])


def test_a_slice_of_each_of_a_few_parameters_is_enough_and_is_our_own_copy() -> None:
    pairs = [(f"p{i}", nn.Parameter(torch.randn(64, 8))) for i in range(40)]
    sample = sample_weights(pairs, parameters=4, elements=32, seed=3)
    assert [kept.copy.numel() for kept in sample.slices.values()] == [32] * 4
    storages = {parameter.untyped_storage().data_ptr() for _, parameter in pairs}
    assert not storages & {kept.copy.untyped_storage().data_ptr() for kept in sample.slices.values()}
    assert list(sample.slices) == ["p5", "p15", "p25", "p35"]
    with torch.no_grad():
        for _, parameter in pairs:
            parameter.mul_(1.5)
    values = measure_update(sample, pairs).tally().measured().values
    assert values[RATIO] == pytest.approx(0.5)


@pytest.mark.parametrize("shape", [(), (5,), (1, 10000), (3, 0), (7, 3, 2)], ids=str)
def test_parameters_of_any_shape_can_be_sampled(shape: tuple[int, ...]) -> None:
    pairs = [("p", nn.Parameter(torch.ones(shape))), ("frozen", nn.Parameter(torch.ones(2), requires_grad=False))]
    measured = measure_update(sample_weights(pairs, elements=16), pairs).tally().measured()
    assert measured.values.get(SKIPPED) == (0.0 if 0 in shape else 1.0)
    assert (RATIO in measured.missing) == (0 in shape)


def test_a_transposed_parameter_is_read_without_being_copied_whole() -> None:
    pairs = [("p", nn.Parameter(torch.arange(12.0).reshape(3, 4).t()))]
    sample = sample_weights(pairs, elements=3)
    assert sample.slices["p"].copy.numel() == 3
    assert measure_update(sample, pairs).tally().measured().values[SKIPPED] == 1


def test_without_a_trainable_parameter_all_is_missing() -> None:
    measured = measure_update(sample_weights([]), []).tally().measured()
    assert set(measured.missing) == {RATIO, SAME}
    zero = [("p", nn.Parameter(torch.zeros(3)))]
    assert "zero" in measure_update(sample_weights(zero), zero).tally().measured().missing[RATIO]


def test_several_steps_of_one_report_add_up() -> None:
    model = model_of()
    steps = [after(model, 0.0), after(model, 0.1), after(model, 0.0)]
    assert sum(steps, Tally.zero()).measured().values[SKIPPED] == 2


@pytest.mark.parametrize(
    ("before", "found_inf", "skipped"),
    [(None, None, None), (1024.0, None, 1), (512.0, None, 0), (256.0, None, 0), (None, 1.0, 1), (None, 0.0, 0)],
)
def test_a_scaler_that_lowered_its_scale_or_found_an_infinity_skipped_the_step(
    before: float | None, found_inf: float | None, skipped: int | None
) -> None:
    for wrap in (float, torch.tensor):
        given = {
            "before": None if before is None else wrap(before),
            "found_inf": None if found_inf is None else wrap(found_inf),
        }
        measured = measure_scaler(wrap(512.0), **given).tally().measured()
        assert measured.values["gradient.loss_scale"] == 512.0
        assert measured.values.get(SKIPPED) == skipped


def test_a_step_seen_twice_as_skipped_is_one_step() -> None:
    tally = after(model_of(), 0.0) + measure_scaler(512.0, before=1024.0).tally()
    assert tally.measured().values[SKIPPED] == 1


def test_a_real_gradient_scaler_skips_at_an_infinity() -> None:
    model, scaler = model_of(), torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before, scale = sample_weights(model.named_parameters()), scaler.get_scale()
    scaler.scale(model(torch.full((1, 6), INF)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    tally = measure_update(before, model.named_parameters()).tally()
    tally += measure_scaler(scaler.get_scale(), before=scale).tally()
    assert (tally.measured().values[SKIPPED], tally.measured().values["gradient.loss_scale"]) == (1, 4.0)


def test_a_device_is_asked_for_nothing() -> None:
    pairs = [(f"p{i}", nn.Parameter(torch.empty(40, 8, device="meta"))) for i in range(20)]
    scale = torch.empty((), device="meta")
    with waits() as waited:
        measure_update(sample_weights(pairs), pairs)
        measure_scaler(scale, before=1024.0)
        measure_scaler(scale, found_inf=scale)
    assert waited == []


def test_neither_weights_nor_a_graph_are_kept_alive() -> None:
    pairs = [("p", nn.Parameter(torch.ones(3)))]
    sample = sample_weights(pairs)
    reduction = measure_update(sample, pairs)
    weights = weakref.ref(pairs[0][1])
    pairs.clear()
    gc.collect()
    assert weights() is None
    assert not any(part.requires_grad for part in reduction.parts)
    assert reduction.tally().measured().values[SKIPPED] == 1
