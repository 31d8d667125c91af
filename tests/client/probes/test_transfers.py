"""Nothing is read from a device before the step's one copy, walked on tensors that have no values to read."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rlvitals.probes import reduction
from rlvitals.probes.gradients import weights_for
from rlvitals.probes.parameters import measure_parameter_gradients
from rlvitals.probes.reduction import Pending, Reduction
from rlvitals.probes.updates import measure_scaler, measure_update, sample_weights
from tests.client.probes.catalogue import NAMES, PROBES, batch, given

# what asks a GPU for a value or for a shape that depends on values, and so waits for it
ASKS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique", "bincount", "histc")


class Waits(TorchDispatchMode):
    """Names what would make a process wait for a device: questions, copies to it or from it, boolean indexes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        given, made = _tensors((args, kwargs)), _tensors(result)
        devices = {tensor.device.type for tensor in (*given, *made) if tensor.dim() or len(given) == 1}
        if name.startswith(ASKS) or ("copy" in name and len(devices) > 1 and not kwargs.get("non_blocking")):
            self.found.append(name)
        if name.startswith("index") and any(tensor.dtype is torch.bool for tensor in given[1:]):
            self.found.append(f"{name} by a mask")
        return result


class Sends(TorchFunctionMode):
    """Names where numbers of Python become a tensor on a device: a copy that waits and that no dispatch shows."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self.found = found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in (torch.tensor, torch.as_tensor) and result.device.type != "cpu" and result is not args[0]:
            self.found.append(func.__name__)
        return result


@contextmanager
def waits() -> Iterator[list[str]]:
    """What would have made the process wait for a device, so far."""
    with Waits() as watch, Sends(watch.found):
        yield watch.found


def _tensors(values: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def on_device(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """As on a GPU whose values nobody may ask for."""
    return {name: tensor.to("meta") for name, tensor in tensors.items()}


@pytest.mark.parametrize("name", NAMES)
def test_measuring_asks_a_device_for_nothing(name: str) -> None:
    tensors = given(PROBES[name], on_device(batch()))
    PROBES[name].measure(tensors)  # whatever the catalogue sends once
    with waits() as waited:
        found = PROBES[name].measure(tensors)
    assert waited == []
    assert {part.device.type for part in found.parts} == {"meta"}


@pytest.mark.parametrize("items", [40, 40.0, torch.tensor(40), torch.tensor(40).to("meta")], ids=repr)
@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dr_grpo", "dapo", "luspo"])
def test_weights_are_made_where_the_mask_is(loss_type: str, items: Any) -> None:
    mask = batch()["mask"].to("meta")
    with waits() as waited:
        weight = weights_for(loss_type, mask, max_completion_length=9, num_items_in_batch=items)
    assert waited == []
    assert weight.is_meta


def _parameters(device: str) -> list[tuple[str, Tensor]]:
    """Of two kinds, one without a gradient."""
    found = [("a", torch.ones(3, 4, device=device)), ("b", torch.ones(5, device=device).half())]
    for _, parameter in found:
        parameter.requires_grad_()
        parameter.grad = torch.ones_like(parameter)
    return [*found, ("frozen", torch.ones(2, device=device))]


def test_neither_do_the_probes_of_parameters() -> None:
    with waits() as waited:
        parameters = _parameters("meta")
        before = sample_weights(parameters, seed=3)
        found = [
            measure_parameter_gradients(parameters),
            measure_update(before, parameters),
            measure_scaler(torch.ones((), device="meta"), before=1.0, found_inf=torch.zeros((), device="meta")),
        ]
    assert waited == []
    assert all(part.is_meta for reduction in found for part in reduction.parts)


def test_what_parameters_were_is_let_go() -> None:
    parameters = _parameters("cpu")
    before = sample_weights(parameters, seed=3)
    found = [measure_parameter_gradients(parameters), measure_update(before, parameters)]
    alive = [weakref.ref(value) for _, p in parameters for value in (p, p.grad) if value is not None]
    del parameters
    assert not any(reference() is not None for reference in alive)
    assert Pending(found).tally().counts["update.elements"] == 17


def test_the_watch_sees_what_waits() -> None:
    values = torch.ones(3)
    with waits() as waited:
        torch.tensor([1.0, 2.0], device="meta")
        torch.ones(3).to("meta")
        torch.equal(torch.ones(2), torch.ones(2))
        torch.ones(2).sum().item()
        assert values[values > 0].numel() == 3
    assert waited == ["tensor", "_to_copy", "equal", "_local_scalar_dense", "index by a mask"]


def test_all_probes_of_a_step_go_in_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Tensor] = []

    class Counted(reduction._Copy):
        def __init__(self, numbers: Tensor) -> None:
            sent.append(numbers)
            super().__init__(numbers)

    monkeypatch.setattr(reduction, "_Copy", Counted)
    tensors = on_device(batch())
    step = [probe.measure(given(probe, tensors)) for probe in PROBES.values()]
    Pending(step)
    assert [numbers.dtype for numbers in sent] == [torch.float64]
    assert sent[0].numel() == sum(part.numel() for found in step for part in found.parts)
    assert sent[0].nbytes < 8 << 20


def test_each_device_of_a_step_sends_one_copy() -> None:
    tensors, found = batch(), PROBES["loss tokens"].measure(batch())
    elsewhere = Reduction(parts=(torch.ones(2, device="meta"), torch.ones(3)), build=_nothing)
    pending = Pending([found, elsewhere, found])
    assert sorted(device.type for device in pending._copies) == ["cpu", "meta"]
    assert Pending([found, found]).tally().counts["policy.loss_tokens"] == 2 * int(tensors["mask"].sum())


def _nothing(parts: Sequence[Any]) -> Any:
    raise AssertionError("a tensor without values cannot be built from")
