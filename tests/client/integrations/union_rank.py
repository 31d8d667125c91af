"""The same training on one rank or on several: the same completions, the same rows in each micro-batch.

Started by test_trl_ranks_union.py. Nothing is random but the weights at the start: what is sampled follows from
the case, the generation and the row's number among all ranks' rows, so that all see together what one alone sees.
Prints a JSON line: what rank 0 reported in each case.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

import rlvitals
from rlvitals.contract import codec
from rlvitals.contract.report import Histogram
from tests.client.integrations import tiny

ROWS, GROUP, STEPS = 8, 4, 2
REF = "ref_per_token_logps"
SAMPLED = "sampling_per_token_logps"
ADVANTAGES = "advantages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """``settings`` of the `GRPOConfig`; ``planted`` are (key, row among all, value) of the second generation.

    ``full`` completions are cut ones of the greatest length; ``cut_from`` is the first row that is such a one;
    ``short`` ones all end in time, and those of the first group are alike. With a ``sampler`` its log-probs lie
    beside the trainer's.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    planted: Sequence[tuple[str, int, float]] = ()
    full: bool = False
    short: bool = False
    sampler: bool = False
    cut_from: int = ROWS
    steps: int = STEPS


REUSED = {"num_iterations": 2}
CASES = {
    "grpo": Case(settings={**REUSED, "loss_type": "grpo", "gradient_accumulation_steps": 2}, steps=4),
    "dapo": Case(settings={"loss_type": "dapo", "steps_per_generation": 2}, steps=4),
    "dr_grpo": Case(settings={"loss_type": "dr_grpo", "use_bias_correction_kl": True, **REUSED}),
    "bnpo": Case(settings={"loss_type": "bnpo"}, full=True),
    "cispo": Case(settings={"loss_type": "cispo", "epsilon_high": 5.0, **REUSED}),
    "sapo": Case(settings={"loss_type": "sapo"}),
    "by sequence": Case(settings={"loss_type": "luspo", "importance_sampling_level": "sequence", **REUSED}),
    "short answers": Case(short=True),
    "a sampler": Case(sampler=True),
    "no reference": Case(settings={"beta": 0.0}),
    "one rank has no loss token": Case(settings={"mask_truncated_completions": True}, cut_from=ROWS // 2),
    "a NaN": Case(planted=[(REF, 6, float("nan"))]),
    "an infinity": Case(planted=[(REF, 6, float("inf"))]),
    "a negative infinity": Case(planted=[(REF, 6, -float("inf"))]),
    "an advantage that is none": Case(planted=[(ADVANTAGES, 5, float("nan"))]),
    "all kinds, on both": Case(
        planted=[(REF, 1, -float("inf")), (REF, 6, float("nan")), (ADVANTAGES, 4, float("inf"))]
    ),
}
ON_ONE_RANK = "only one rank has the sampler's log-probs"


def main(policy: Path, folder: Path) -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    output = folder / f"output-{rank}"
    told = run_all(policy, output, rank, size)
    told[ON_ONE_RANK] = run(Case(), policy, output / ON_ONE_RANK, rank, size, sampler_on=1)
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


def run_all(policy: Path, output: Path, rank: int, size: int) -> dict[str, Any]:
    """Case → what its steps told on rank 0, and every rank's weights at the end."""
    return {name: run(case, policy, output / name, rank, size) for name, case in CASES.items()}


def run(
    case: Case, policy: Path, output: Path, rank: int, size: int, sampler_on: int | None = None
) -> dict[str, Any]:
    accumulation = int(case.settings.get("gradient_accumulation_steps", 1))
    settings = {"learning_rate": 1e-2, "max_steps": case.steps, **case.settings}
    rows = ROWS // size // accumulation
    trainer = tiny.make_trainer(
        policy, output, per_device_train_batch_size=rows, num_generations=GROUP, **settings
    )
    trainer.model.double()
    if trainer.ref_model is not None:
        trainer.ref_model.double()
    chunks = int(case.settings.get("steps_per_generation", accumulation))
    script = Script(case, trainer, rank, size, chunks, sampler_on)
    trainer._generate_single_turn, trainer._generate_and_score_completions = script.sample, script.score
    with mock.patch("trl.trainer.grpo_trainer.shuffle_sequence_dict", script.arrange):
        reporter = rlvitals.attach(trainer)
        trainer.train()
    told: dict[str, Any] = {"weights": tiny.weights_hash(trainer), "beta": trainer.beta}
    if reporter.enabled:
        found = tiny.records(reporter)
        told["steps"] = [codec.encode(step) for step in tiny.steps_of(found)]
        told["histograms"] = [codec.encode(record) for record in found if isinstance(record, Histogram)]
        reporter.close()
    return told


class Script:
    """In the place of sampling, and of the dice that shuffle a generation."""

    def __init__(
        self, case: Case, trainer: Any, rank: int, size: int, chunks: int, sampler_on: int | None
    ) -> None:
        self._case, self._rank, self._size, self._chunks = case, rank, size, chunks
        self._sampler_on, self._generations = sampler_on, 0
        self._score = trainer._generate_and_score_completions

    def sample(self, prompts: list[Any], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        self._generations += 1
        first = self._rank * len(prompts)
        return [self._completion(first + row) for row in range(len(prompts))], None

    def score(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        result: dict[str, Any] = self._score(*args, **kwargs)
        first = self._rank * len(result["completion_ids"])
        if self._generations == 2:
            for key, row, value in self._case.planted:
                if first <= row < first + len(result["completion_ids"]):
                    result[key][row - first] = value
        if self._case.sampler or self._sampler_on == self._rank:
            rows = torch.arange(first, first + len(result["completion_ids"]))[:, None]
            result[SAMPLED] = (-5.0 - rows / 10).expand(result["completion_ids"].shape).double()
        return result

    def arrange(self, batch: dict[str, Any]) -> dict[str, Any]:
        """One rank's rows in the order in which several would have trained on them."""
        rows = len(batch["completion_ids"])
        if self._size > 1:
            return batch
        order = torch.arange(rows).reshape(2, self._chunks, -1).transpose(0, 1).reshape(-1)
        return {
            key: value[order] if isinstance(value, torch.Tensor) and value.ndim else value
            for key, value in batch.items()
        }

    def _completion(self, row: int) -> list[int]:
        dice = random.Random(1000 * self._generations + (row if not self._case.short else max(row, GROUP - 1)))
        cut = self._case.full or row >= self._case.cut_from
        length = tiny.CAP if cut else dice.randint(1, tiny.CAP // 2 if self._case.short else tiny.CAP)
        ids = [dice.randrange(256) for _ in range(length)]
        return ids if cut or length == tiny.CAP else [*ids[:-1], 256]


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
