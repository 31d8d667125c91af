"""TRL on several ranks as jobs have them: weights in shards, adapters, commands at any time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client.integrations import tiny
from tests.client.integrations.pair import run_pair
from tests.trainers.extensions import compiled
from tests.trainers.ranks import job as job_module
from tests.trainers.ranks.job import Job
from tests.trainers.ranks.sharding import SHARDED

ENVIRONMENT = "trl-ranks"
DEADLINE_S = 280.0


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture
def run(policy: Path, tmp_path: Path, environment: Callable[[str], Path]) -> Callable[..., list[dict[str, Any]]]:
    """Runs a `Job` on two ranks and returns what each told, the first rank first."""

    def run(**given: Any) -> list[dict[str, Any]]:
        job, python = Job(policy=str(policy), output=str(tmp_path / "output"), **given), environment(ENVIRONMENT)
        told = run_pair(
            job_module.__name__,
            tmp_path,
            str(job.write(tmp_path / "job.json")),
            deadline_s=DEADLINE_S,
            python=python,
            env=compiled(python, "ShareMemCommBuilder") if job.how.startswith("zero") else None,
        )
        return sorted(told, key=lambda rank: int(rank["rank"]))

    return run


Run = Callable[..., list[dict[str, Any]]]
COMMANDS = [
    ("step_end", 1, "k", "set_kl_coef", 0.1),
    ("step_end", 1, "l", "scale_lr", 0.5),
    ("generation", 2, "c", "checkpoint"),
    ("step_end", 5, "s", "stop"),
]
OF_GRADIENTS = ("gradient.nonfinite_parameters", "gradient.top_parameter_share")
OF_WEIGHTS = ("gradient.update_ratio", "gradient.unchanged_share", "numerics.nonfinite_weights")


@pytest.mark.parametrize("how", SHARDED)
def test_sharded_weights_are_trained_as_without_us_and_every_rank_obeys(run: Run, how: str) -> None:
    ranks = run(
        how=how,
        runs=("plain", "watched", "steered"),
        attach={"kl_gradient_every": 2},
        commands=COMMANDS,
        trainer={"max_steps": 6},
    )
    for rank in ranks:
        assert rank["watched"]["weights"] == rank["plain"]["weights"]
        assert rank["errors"] == 0
        assert rank["watched"]["rows"] == 262, "of the whole embedding, whatever part of it lies here"
        steered = rank["steered"]
        assert (steered["steps"], steered["beta"]) == (5, 0.1)
        assert steered["rates"] == pytest.approx([5e-3] * 5)
        assert steered["checkpoints"] == ["checkpoint-3", "checkpoint-5"]
    assert_told(ranks[0]["watched"], how)


def assert_told(watched: dict[str, Any], how: str) -> None:
    assert [step for step, *_ in watched["reports"]] == [1, 2, 3, 4, 5, 6]
    _, values, missing = watched["reports"][-1]
    assert {"kl.k3", "kl.grad_norm", "ratio.reference_max", "policy.entropy_p10"} <= set(values)
    assert {"text.invalid_utf8_per_1k", "text.never_trained_rate", "text.duplicate_rate"} <= set(values)
    assert values["length.completions"] == 8
    assert 0 < values["gradient.norm"] < 10
    withheld = OF_GRADIENTS + OF_WEIGHTS if how.startswith("zero") else ()
    for name in (*OF_GRADIENTS, *OF_WEIGHTS):
        assert (name in missing) == (name in withheld)
        assert (name in values) != (name in withheld)
    by = "DeepSpeed" if how.startswith("zero") else "FSDP"
    assert by in missing["kl.parameter_grad_norm"]


@pytest.mark.parametrize("lora", [False, True], ids=["whole model", "adapter"])
def test_commands_that_arrive_at_any_time_are_obeyed_by_all_ranks(run: Run, lora: bool) -> None:
    ranks = run(
        lora=lora,
        runs=("plain", "watched", "steered"),
        beats=4,
        beat_s=0.05,
        attach={"kl_gradient_every": 3},
        commands=[
            ("generation", 0, "k", "set_kl_coef", 0.1),
            ("evaluate", 2, "l", "scale_lr", 0.5),
            ("save", 3, "c", "checkpoint"),
            ("step_end", 5, "p", "pause"),
            ("save", 6, "s", "stop"),
        ],
        trainer={
            "gradient_checkpointing": True,
            "steps_per_generation": 2,
            "num_iterations": 2,
            "max_steps": 9,
            "eval_strategy": "steps",
            "eval_steps": 2,
            "save_strategy": "steps",
            "save_steps": 3,
        },
    )
    first, second = (rank["steered"] for rank in ranks)
    assert [rank["watched"]["weights"] for rank in ranks] == [rank["plain"]["weights"] for rank in ranks]
    for rank in (first, second):
        assert (rank["beta"], rank["steps"], rank["beats"]) == (0.1, 7, 4)
        assert rank["rates"] == pytest.approx([1e-2, 1e-2, *[5e-3] * 5])
        assert rank["checkpoints"] == ["checkpoint-3", "checkpoint-4", "checkpoint-6", "checkpoint-7"]
    assert first["weights"] == second["weights"]
    assert [outcome[:3] for outcome in first["outcomes"]] == [
        *[["k", "applied", 1], ["l", "applied", 3], ["c", "applied", 4], ["p", "applied", 5]],
        *[["resume", "applied", 5], ["s", "applied", 7]],
    ]
    # an evaluation is told beside the step after which it came
    reports = {step: values for step, values, _ in first["reports"] if "policy.loss" in values}
    assert list(reports) == [1, 2, 3, 4, 5, 6, 7]
    assert [values["kl.coef"] for values in reports.values()] == [0.5, *[0.1] * 6]
    # of the third step on the policy has left its reference, which for an adapter is the model without it
    assert all(values["kl.k3"] > 0 and values["kl.grad_norm"] > 0 for values in list(reports.values())[2:])
    assert all(values["ratio.max"] >= 1 for values in reports.values()), "batches are trained on more than once"
    # a pass of its own through the bare model, which the other rank takes no part in
    found = {step: values.get("kl.parameter_grad_norm", 0.0) > 0 for step, values in reports.items()}
    assert [step for step, is_found in found.items() if is_found] == [3, 6]
    for values in (reports[1], reports[5]):
        assert {"text.invalid_utf8_per_1k", "text.never_trained_rate", "length.mean"} <= set(values)
    assert "text.invalid_utf8_per_1k" not in reports[2], "no generation in this step"
