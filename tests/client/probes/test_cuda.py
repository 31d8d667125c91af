"""On a GPU: the same Tally as on the CPU, one copy a step, no waiting, and a tenth of the inputs' memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks import memory
from rlvitals.probes.reduction import Pending, Reduction
from rlvitals.probes.tally import Tally
from tests.client.probes.catalogue import NAMES, PROBES, TOKENS, assert_same, batch, given

if not torch.cuda.is_available():
    pytest.skip(
        "NO GPU IS PRESENT: NOTHING IS SHOWN OF WHAT THE PROBES DO ON ONE (see test_transfers for a dry run)",
        allow_module_level=True,
    )

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
AIM_MS = 1.0


def on_gpu(tensors: dict[str, Tensor], device: str = "cuda") -> dict[str, Tensor]:
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def measure(name: str, tensors: dict[str, Tensor]) -> Reduction:
    return PROBES[name].measure(given(PROBES[name], tensors))


def assert_alike(found: Tally, expected: Tally) -> None:
    """The same up to the last digits of exp and log; a ratio at the border of two bins may lie in either."""
    assert found.sketches.keys() == expected.sketches.keys()
    for name, sketch in expected.sketches.items():
        pairs = zip(found.sketches[name].counts, sketch.counts, strict=True)
        assert found.sketches[name].total == sketch.total
        assert sum(abs(a - b) for a, b in pairs) <= 4
    # what the largest ids leave over is a difference of two sums
    by_id = {
        name: replace(sums, rest=expected.by_id[name].rest, slack=expected.by_id[name].slack)
        for name, sums in found.by_id.items()
    }
    assert_same(replace(found, sketches=expected.sketches, by_id=by_id), expected, rel=1e-9)


@contextmanager
def refusing_to_wait() -> Iterator[None]:
    """Whatever PyTorch knows to wait for the GPU raises."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_counts_what_the_cpu_counts(name: str) -> None:
    tensors = batch(40, 300)
    assert_alike(measure(name, on_gpu(tensors)).tally(), measure(name, tensors).tally())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_on_a_gpu_is_counted_in_doubles(name: str, dtype: torch.dtype) -> None:
    tensors = batch()
    half = tensors | {key: tensors[key].to(dtype) for key in ("logp", "ref", "old", "advantages", "weight")}
    assert_alike(measure(name, on_gpu(half)).tally(), measure(name, half).tally())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0)], ids=str)
def test_a_batch_without_tokens_on_a_gpu_counts_nothing(name: str, shape: tuple[int, int]) -> None:
    tensors = batch(*shape)
    assert_alike(measure(name, on_gpu(tensors)).tally(), measure(name, tensors).tally())


@pytest.mark.parametrize("name", NAMES)
def test_measuring_and_sending_never_wait_for_the_gpu(name: str) -> None:
    tensors = on_gpu(batch())
    Pending([measure(name, tensors)]).tally()  # what a library makes once may wait
    with refusing_to_wait():
        pending = Pending([measure(name, tensors)])
        pending.ready()
    assert_alike(pending.tally(), measure(name, batch()).tally())


def test_a_step_of_all_probes_sends_one_copy_and_receives_none() -> None:
    tensors = on_gpu(batch())
    Pending([measure(name, tensors) for name in NAMES]).tally()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        Pending([measure(name, tensors) for name in NAMES])
        torch.cuda.synchronize()
    names = [event.name for event in profile.events()]
    copies = [name for name in names if name.startswith("Memcpy")]
    if not any(event.device_type.name == "CUDA" for event in profile.events()):
        pytest.skip("THE PROFILER SAW NO GPU: COPIES WERE NOT COUNTED")
    assert [name for name in copies if "DtoH" in name] == ["Memcpy DtoH (Device -> Pinned)"]
    assert not [name for name in copies if "HtoD" in name]


def test_ready_tells_without_waiting_that_the_gpu_is_busy() -> None:
    tensors = on_gpu(batch())
    Pending([measure("kl k3", tensors)]).tally()
    torch.cuda.synchronize()
    torch.cuda._sleep(1_000_000_000)  # cycles: about half a second
    began = time.perf_counter()
    pending = Pending([measure("kl k3", tensors)])
    busy = not pending.ready()
    assert time.perf_counter() - began < 0.2
    assert busy
    assert_alike(pending.tally(), measure("kl k3", batch()).tally())
    assert pending.ready()


def test_what_a_side_stream_measured_is_waited_for() -> None:
    tensors, stream = on_gpu(batch()), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        pending = Pending([measure("ratios", tensors)])
    assert_alike(pending.tally(), measure("ratios", batch()).tally())


def test_tensors_on_another_gpu_than_the_current_one_are_waited_for() -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("ONLY ONE GPU IS PRESENT: NOTHING IS SHOWN OF TENSORS ON A SECOND ONE")
    first, second = on_gpu(batch()), on_gpu(batch(seed=1), "cuda:1")
    with torch.cuda.device(1):
        torch.cuda._sleep(200_000_000)
    pending = Pending([measure("ratios", second), measure("ratios", first)])
    expected = measure("ratios", batch()).tally() + measure("ratios", batch(seed=1)).tally()
    assert_alike(pending.tally(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_a_gpus_and_the_cpus_sums_add_up_in_one_step(name: str) -> None:
    both = Pending([measure(name, on_gpu(batch())), measure(name, batch())]).tally()
    once = measure(name, batch()).tally()
    assert_alike(both, once + once)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", ["inference", "autocast", "deterministic"])
def test_the_trainers_mode_changes_nothing_on_a_gpu(name: str, mode: str) -> None:
    tensors = on_gpu(batch())
    expected = measure(name, batch()).tally()
    if mode == "deterministic":
        torch.use_deterministic_algorithms(True)
    try:
        with {
            "inference": torch.inference_mode,
            "autocast": lambda: torch.autocast("cuda", torch.bfloat16),
            "deterministic": torch.no_grad,
        }[mode]():
            found = measure(name, tensors)
    finally:
        torch.use_deterministic_algorithms(False)
    assert_alike(found.tally(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_jagged_rows_on_a_gpu_are_counted_without_waiting(name: str) -> None:
    sizes = [9, 0, 4, 5, 1, 9]
    inside = torch.arange(9) < torch.tensor(sizes).unsqueeze(1)
    tensors = batch()
    padded = tensors | {key: tensors[key].masked_fill(~inside, 0) for key in TOKENS}
    padded["lengths"] = torch.minimum(tensors["lengths"], torch.tensor(sizes))

    def jagged(tensor: Tensor) -> Tensor:
        rows = [row[:size].clone() for row, size in zip(tensor, sizes, strict=True)]
        return torch.nested.nested_tensor(rows, layout=torch.jagged, device="cuda")

    ragged = on_gpu(padded) | {key: jagged(padded[key]) for key in TOKENS}
    measure(name, ragged).tally()
    with refusing_to_wait():
        found = measure(name, ragged)
    assert_alike(found.tally(), measure(name, padded).tally())


@pytest.mark.parametrize("name", memory.PROBES)
def test_a_gpu_needs_a_tenth_of_the_inputs_beside_them(name: str) -> None:
    reads, probe = memory.PROBES[name]
    tensors = on_gpu(memory.batch(memory.SHAPE))
    inputs = {key: tensors[key] for key in reads}
    probe(inputs)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    held = probe(inputs)
    extra = torch.cuda.max_memory_allocated() - before
    assert held is not None
    assert extra <= memory.BUDGET * sum(tensor.nbytes for tensor in inputs.values())


def test_the_time_of_each_probe_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"\nmilliseconds on {torch.cuda.get_device_name()}, aim {AIM_MS:.0f}: launched by the CPU, done by the GPU"
    ]
    for shape in ((8, 1024), memory.SHAPE):
        tensors = on_gpu(memory.batch(shape))
        for name, (reads, probe) in memory.PROBES.items():
            inputs = {key: tensors[key] for key in reads}
            launched, done = _milliseconds(lambda: probe(inputs))  # noqa: B023
            over = "   over" if max(launched, done) > AIM_MS else ""
            lines.append(f"  {shape!s:12}{name:20}{launched:9.2f}{done:9.2f}{over}")
    with capsys.disabled():
        print("\n".join(lines))


def _milliseconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Least of several: until the call returned, and between two marks on the GPU's own clock."""
    launched, done = [], []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        began = time.perf_counter()
        start.record()
        call()
        end.record()
        launched.append(1000 * (time.perf_counter() - began))
        torch.cuda.synchronize()
        done.append(start.elapsed_time(end))
    return min(launched), min(done)
