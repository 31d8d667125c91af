"""Where the job is and how fast it goes."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_NO_GPU = "missing on a CPU, and where the device's allocator keeps no books"


def _phase(name: str, what: str) -> Metric:
    return Metric(
        name=f"progress.phase_{name}_s",
        unit="s",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning=f"Time in this step for {what}.",
        formula="seconds inside the phase, without those of a phase within it; the slowest writer's",
        shape="a scalar",
        edge="0 where the phase did not happen in this step; missing where the integration cannot see it",
    )


PROGRESS: tuple[Metric, ...] = (
    Metric(
        name="progress.step_time",
        unit="s",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="Wall time of the step.",
        formula="clock at its end - clock at its beginning; the slowest writer's",
        shape="a scalar",
        edge="missing for a step whose beginning was not seen",
    ),
    Metric(
        name="progress.tokens",
        unit="{token}",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Tokens seen since the start, by the trainer's count.",
        formula="as the trainer counts them",
        shape="a scalar",
        edge="missing where the trainer does not count them",
        source="HF Trainer num_input_tokens_seen",
    ),
    Metric(
        name="progress.epoch",
        unit="1",
        merge=Merge.LAST,
        worse=Worse.NEITHER,
        meaning="Epoch by the trainer's count.",
        formula="as the trainer counts it",
        shape="a scalar",
        edge="missing where the trainer does not count it",
        source="HF Trainer epoch",
    ),
    _phase("rollout", "sampling completions"),
    _phase("reward", "computing rewards"),
    _phase("reference", "computing reference and old log-probs"),
    _phase("update", "loss, backward pass and optimizer step"),
    _phase("eval", "evaluation"),
    _phase("checkpoint", "writing checkpoints"),
    Metric(
        name="progress.gpu_memory_bytes",
        unit="By",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="GPU memory in tensors at the end of the step, the fullest writer's.",
        formula="the allocator's own books",
        shape="a scalar",
        edge=_NO_GPU,
        source="torch.cuda.memory_allocated",
    ),
    Metric(
        name="progress.gpu_memory_reserved_bytes",
        unit="By",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="GPU memory that the allocator holds, tensors and free blocks together.",
        formula="the allocator's own books",
        shape="a scalar",
        edge=_NO_GPU,
        source="torch.cuda.memory_reserved",
    ),
    Metric(
        name="progress.gpu_memory_peak_bytes",
        unit="By",
        merge=Merge.MAX,
        worse=Worse.UP,
        meaning="The most GPU memory in tensors since the start, or since the trainer last reset that count.",
        formula="the allocator's own books",
        shape="a scalar",
        edge=_NO_GPU,
        source="torch.cuda.max_memory_allocated",
    ),
)
