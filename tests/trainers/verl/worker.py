"""One engine worker of the installed verl in this process, without Ray: a few updates on batches always alike.

``python worker.py FOLDER KIND`` with KIND off, watched or raising; prints a JSON line with hashes of the weights,
what the worker told, and what commands did to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

STEPS, ROWS, LENGTH, PROMPT = 3, 8, 6, 4


def make_worker(folder: Path) -> Any:
    from verl.trainer.config import CheckpointConfig
    from verl.workers.config import (
        FSDPActorConfig,
        FSDPEngineConfig,
        FSDPOptimizerConfig,
        HFModelConfig,
    )
    from verl.workers.config.engine import TrainingWorkerConfig
    from verl.workers.engine_workers import TrainingWorker
    from verl.workers.utils.losses import ppo_loss

    engine = FSDPEngineConfig(strategy="fsdp2", dtype="float32", use_torch_compile=False)
    config = TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=str(folder / "policy"),
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "eager"},
        ),
        engine_config=engine,
        optimizer_config=FSDPOptimizerConfig(lr=1e-2, total_training_steps=100),
        checkpoint_config=CheckpointConfig(),
    )
    engine.micro_batch_size_per_gpu = engine.infer_micro_batch_size_per_gpu = 4
    engine.use_dynamic_bsz = False
    worker = TrainingWorker(config=config)
    worker.reset()
    actor = FSDPActorConfig(
        strategy="fsdp2",
        rollout_n=1,
        ppo_mini_batch_size=ROWS,
        ppo_micro_batch_size_per_gpu=4,
        use_kl_loss=True,
        kl_loss_coef=0.01,
    )
    worker.set_loss_fn(partial(ppo_loss, config=actor))
    return worker


def make_batch(step: int) -> Any:
    import torch
    from verl.utils import tensordict_utils as tu

    dice = torch.Generator().manual_seed(step)
    prompts = [torch.randint(0, 250, (PROMPT,), generator=dice) for _ in range(ROWS)]
    answers = [torch.randint(0, 250, (2 + row % LENGTH,), generator=dice) for row in range(ROWS)]

    def jagged(rows: list[Any]) -> Any:
        return torch.nested.nested_tensor(rows, layout=torch.jagged)

    ids = [torch.cat(pair) for pair in zip(prompts, answers, strict=True)]
    old = [-5.5 + torch.rand(len(answer), generator=dice) / 10 for answer in answers]
    return tu.get_tensordict(
        {
            "prompts": jagged(prompts),
            "responses": jagged(answers),
            "input_ids": jagged(ids),
            "position_ids": jagged([torch.arange(len(row)) for row in ids]),
            "response_mask": jagged([torch.ones(len(answer), dtype=torch.long) for answer in answers]),
            "loss_mask": jagged([torch.ones(len(answer), dtype=torch.long) for answer in answers]),
            "old_log_probs": jagged(old),
            "ref_log_prob": jagged([row + 0.1 for row in old]),
            "advantages": jagged([torch.full((len(a),), (-1.0) ** row) for row, a in enumerate(answers)]),
        },
        {
            "temperature": 1.0,
            "global_batch_size": ROWS,
            "mini_batch_size": ROWS,
            "epochs": 1,
            "seed": 1,
            "calculate_entropy": False,
            "dataloader_kwargs": {"shuffle": False},
        },
    )


def digest(worker: Any) -> str:
    found = hashlib.sha256()
    for name, value in worker.engine.module.state_dict().items():
        whole = value.full_tensor() if hasattr(value, "full_tensor") else value
        found.update(name.encode() + whole.detach().contiguous().numpy().tobytes())
    return found.hexdigest()


def told_by(worker: Any) -> Any:
    """What the driver would be told, as the registry's values."""
    import numpy as np
    from verl import DataProto

    from rlvitals.integrations.verl import workers
    from rlvitals.probes.tally import Tally

    asked = DataProto.from_dict(tensors={}, non_tensors={workers.COLUMN: np.array([""], dtype=object)})
    answer = json.loads(workers.take(_Outer(worker), asked).non_tensor_batch[workers.COLUMN][0])
    found = Tally.from_dict(answer["tally"]).measured()
    return {
        "values": found.values,
        "token": getattr(found.extremes.get("ratio.max"), "token_id", None),
        "hooks": {name: row["seen"] for name, row in answer["hooks"].items()},
    }


class _Outer:
    """The worker of a role, which holds the actor's."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor


class _Group:
    """A worker group of one rank."""

    world_size = 1

    def __init__(self, worker: Any) -> None:
        self._worker = worker

    def execute_with_func_generator(self, function: Any, data: Any) -> Any:
        return function(self._worker, data)


def steered(worker: Any) -> dict[str, Any]:
    from rlvitals.integrations.verl import ranks_of_workers as ranks
    from rlvitals.integrations.verl.workers import count_poisoned

    group = _Group(_Outer(worker))
    made: dict[str, Any] = {"kl": [ranks.on_each_rank(group, ranks.set_kl, 0.5)[0]]}
    output = worker.train_mini_batch(make_batch(9))
    from verl.utils import tensordict_utils as tu

    made["kl"].append(float(tu.get(output, "metrics")["kl_coef"][0]))
    made["rate"] = [
        ranks.on_each_rank(group, ranks.read_rate)[0],
        ranks.on_each_rank(group, ranks.scale_rate, 0.5)[0],
    ]
    made["poisoned"] = [ranks.on_each_rank(group, count_poisoned)[0]]
    next(worker.engine.module.parameters()).data.to_local().view(-1)[0] = float("nan")
    made["poisoned"].append(ranks.on_each_rank(group, count_poisoned)[0])
    return made


def main(folder: Path, kind: str) -> None:
    os.environ |= {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        os.environ["MASTER_PORT"] = str(probe.getsockname()[1])
    import torch
    import verl  # noqa: F401

    torch.manual_seed(1)
    worker = make_worker(folder)
    found: dict[str, Any] = {"digests": [], "told": [], "seconds": []}
    for step in range(STEPS):
        began = time.perf_counter()
        worker.train_mini_batch(make_batch(step))
        found["seconds"].append(time.perf_counter() - began)
        found["digests"].append(digest(worker))
        if kind == "watched":
            found["told"].append(told_by(worker))
    if kind == "watched":
        found["steered"] = steered(worker)
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
