"""All probes, whatever a trainer's tensors are and whatever mode it runs in: the same Tally, no trace left."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.logits import measure_logits
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally
from tests.client.probes.catalogue import FLOATS, NAMES, PROBES, TOKENS, assert_same, batch, given

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
# where exp overflows depends on the float type that a trainer computes in
TYPED = ("kl.overflow_margin",)

# what is counted of a completion without a token, too
OF_ROWS = ("text.completions", "advantage.seen", "advantage.zero")


def tally(name: str, tensors: dict[str, Tensor]) -> Tally:
    return PROBES[name].measure(given(PROBES[name], tensors)).tally()


def changed(tensors: dict[str, Tensor], form: Callable[[Tensor], Tensor], *names: str) -> dict[str, Tensor]:
    return tensors | {name: form(tensors[name]) for name in names}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_is_counted_in_doubles(name: str, dtype: torch.dtype) -> None:
    half = changed(batch(), lambda t: t.to(dtype), *FLOATS)
    assert_same(tally(name, half), tally(name, changed(half, Tensor.double, *FLOATS)), besides=TYPED)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.uint8, torch.float32, torch.bfloat16], ids=str)
def test_a_mask_may_be_of_any_dtype(name: str, dtype: torch.dtype) -> None:
    assert_same(tally(name, changed(batch(), lambda t: t.to(dtype), "mask")), tally(name, batch()), rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_ids_may_be_of_32_bits(name: str) -> None:
    assert_same(tally(name, changed(batch(), Tensor.int, "ids", "lengths")), tally(name, batch()), rel=0)


def _strided(tensor: Tensor) -> Tensor:
    return tensor.t().contiguous().t() if tensor.dim() == 2 else torch.stack([tensor, tensor], 1)[:, 0]


@pytest.mark.parametrize("name", NAMES)
def test_tensors_need_not_be_contiguous(name: str) -> None:
    strided = {key: _strided(tensor) for key, tensor in batch().items()}
    assert not strided["logp"].is_contiguous()
    assert_same(tally(name, strided), tally(name, batch()), rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_one_row_may_stand_for_all(name: str) -> None:
    one = changed(batch(), lambda t: t[1:2].expand(6, -1), *TOKENS)
    assert one["logp"].stride() == (0, 1)
    assert_same(tally(name, one), tally(name, changed(one, Tensor.contiguous, *TOKENS)), rel=0)


# completions without tokens still have advantages, and are duplicates of each other
BY_TOKEN = [name for name in NAMES if name not in ("advantages", "content")]


@pytest.mark.parametrize("name", BY_TOKEN)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)], ids=str)
def test_a_batch_without_tokens_counts_nothing(name: str, shape: tuple[int, int]) -> None:
    found = tally(name, batch(*shape))
    assert not any(found.counts[key] for key in found.counts if key not in OF_ROWS)
    assert not any(found.sums.values())
    assert not found.firsts


@pytest.mark.parametrize("name", [name for name in NAMES if "logits" not in name])
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_ragged_rows_count_as_their_padding_under_no_mask(name: str, layout: torch.layout) -> None:
    tensors, sizes = batch(), [9, 0, 4, 5, 1, 9]
    inside = torch.arange(9) < torch.tensor(sizes).unsqueeze(1)
    padded = changed(tensors, lambda t: t.masked_fill(~inside, 0), *TOKENS)
    padded["lengths"] = torch.minimum(tensors["lengths"], torch.tensor(sizes))

    def ragged(tensor: Tensor) -> Tensor:
        return torch.nested.nested_tensor(
            [row[:size].clone() for row, size in zip(tensor, sizes, strict=True)], layout=layout
        )

    assert_same(tally(name, changed(padded, ragged, *TOKENS)), tally(name, padded), rel=0)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_ragged_logits_are_refused_by_name(layout: torch.layout) -> None:
    tensors = batch()
    ragged = torch.nested.nested_tensor(list(tensors["logits"]), layout=layout)
    with pytest.raises(ShapeError, match=r"^logits: expected \(B, T, V\), got a nested tensor$"):
        measure_logits(ragged)
    mask = torch.nested.nested_tensor(list(tensors["mask"]), layout=layout)
    with pytest.raises(ShapeError, match=r"^mask: expected \(6, 9\), got a nested tensor$"):
        measure_logits(tensors["logits"], mask)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_batch_gives_the_same_bits_again(name: str) -> None:
    assert_same(tally(name, batch(40, 300)), tally(name, batch(40, 300)), rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_threads_changes_nothing_but_the_rounding_of_sums(name: str) -> None:
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(tally(name, batch(20, 2000)))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert_same(other, found[0], rel=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_no_global_random_state_is_touched(name: str) -> None:
    tensors = batch()
    before = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    tally(name, tensors)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (repr(np.random.get_state()), random.getstate()) == before[1:]


@pytest.mark.parametrize("name", NAMES)
def test_no_graph_is_kept_and_no_gradient_left(name: str) -> None:
    leaves = changed(batch(), Tensor.requires_grad_, *FLOATS)
    grown = changed(leaves, lambda t: t * 1, *FLOATS)
    reduction = PROBES[name].measure(given(PROBES[name], grown))
    assert not any(part.requires_grad or part.grad_fn is not None for part in reduction.parts)
    assert_same(reduction.tally(), tally(name, batch()), rel=0)
    assert all(leaf.grad is None for leaf in leaves.values())


@pytest.mark.parametrize("name", NAMES)
def test_no_tensor_is_kept_alive(name: str) -> None:
    tensors = given(PROBES[name], batch())
    reduction = PROBES[name].measure(tensors)
    storages = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
    assert not storages & {part.untyped_storage().data_ptr() for part in reduction.parts}
    alive = [weakref.ref(tensor) for tensor in tensors.values()]
    del tensors
    assert not any(reference() is not None for reference in alive)
    pending = Pending([reduction])
    found = pending.tally()
    parts = [weakref.ref(part) for part in reduction.parts]
    del reduction, pending
    assert not any(reference() is not None for reference in parts)
    assert_same(found, tally(name, batch()), rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_not_written_to(name: str) -> None:
    tensors = batch()
    tally(name, tensors)
    for key, expected in batch().items():
        assert torch.equal(tensors[key].nan_to_num(7.5), expected.nan_to_num(7.5)), key


MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "deterministic": lambda: _Deterministic(),
    "single precision by default": lambda: _Default(torch.bfloat16),
}


class _Deterministic:
    def __enter__(self) -> None:
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *_: object) -> None:
        torch.use_deterministic_algorithms(False)


class _Default:
    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype, self._before = dtype, torch.get_default_dtype()

    def __enter__(self) -> None:
        torch.set_default_dtype(self._dtype)

    def __exit__(self, *_: object) -> None:
        torch.set_default_dtype(self._before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", MODES)
def test_the_trainers_mode_changes_nothing(name: str, mode: str) -> None:
    tensors = batch()
    with MODES[mode]():
        reduction = PROBES[name].measure(given(PROBES[name], tensors))
    assert_same(reduction.tally(), tally(name, tensors), rel=0)


@pytest.mark.parametrize("name", NAMES)
def test_tensors_made_for_inference_are_read_outside_of_it(name: str) -> None:
    with torch.inference_mode():
        tensors = {key: tensor.clone() for key, tensor in batch().items()}
    assert tensors["logp"].is_inference()
    assert_same(tally(name, tensors), tally(name, batch()), rel=0)


# one for each module: a compiler takes its time
COMPILED = ("kl k3", "ratios", "rollout", "policy pull", "loss tokens", "non-finite census", "text by mask")


@pytest.mark.parametrize("name", COMPILED)
def test_inside_a_compiled_function_it_runs_as_it_is_and_is_compiled_once(name: str) -> None:
    from torch._dynamo.utils import counters

    measure = PROBES[name].measure
    tally(name, batch())  # whatever the catalogue makes once

    def step(tensors: dict[str, Tensor]) -> tuple[Tensor, Tally]:
        first = next(iter(tensors.values()))
        return first * 2, measure(tensors).tally()

    torch._dynamo.reset()
    counters.clear()
    compiled, graphs = torch.compile(step, backend="eager"), []
    for seed in range(4):
        tensors = batch(seed=seed)
        assert_same(compiled(given(PROBES[name], tensors))[1], tally(name, tensors), rel=0)
        graphs.append(counters["stats"]["unique_graphs"])
    assert graphs == graphs[:1] * 4
