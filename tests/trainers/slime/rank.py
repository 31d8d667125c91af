"""One of two training ranks: slime's own gloo group, its loss on tensors of this rank, our hooks; a JSON line."""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime, timedelta, timezone
from typing import Any

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])

import torch
import torch.distributed as dist

from tests.client.integrations import slime_fake
from tests.trainers.slime import megatron_stub

megatron_stub.install()
from megatron.core import mpu  # noqa: E402
from slime.utils import distributed_utils  # noqa: E402

from rlvitals.contract.command import Command, CommandKind, Outcome  # noqa: E402
from rlvitals.contract.report import StepReport  # noqa: E402
from rlvitals.follow import Follower  # noqa: E402
from rlvitals.integrations import slime  # noqa: E402
from rlvitals.integrations.slime import train  # noqa: E402
from rlvitals.integrations.slime.flags import StoppedOnRequest  # noqa: E402
from rlvitals.spool import journal_folder  # noqa: E402


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    distributed_utils.init_gloo_group()
    rank, first = dist.get_rank(), int(os.environ["MAIN_RANK"])
    mpu.get_data_parallel_rank = lambda with_context_parallel=False: (rank - first) % 2
    args = slime_fake.arguments()
    coefficients, stopped = [], False
    for rollout_id in range(4):
        try:
            slime.before_train_step(args, rollout_id, 0, [slime_fake.Model()], slime_fake.Optimizer(), None)
        except StoppedOnRequest:
            stopped = True
            break
        coefficients.append(args.kl_loss_coef)
        training = train.training_of(args, "actor")
        assert training is not None
        batch = slime_fake.micro_batch()
        logp = [value + 0.1 * rank for value in batch["log_probs"]]
        training.measure(batch, logp, None, torch.tensor(1.0))
        if rank == first:
            training.vitals.reporter.control.offer(_wishes(rollout_id))
        if rollout_id == 1:  # as between two rollouts of a colocated job
            distributed_utils.set_gloo_group(dist.new_group(backend="gloo"))
    print(json.dumps({"rank": rank, "coefficients": coefficients, "stopped": stopped, **_journalled(training)}))
    dist.destroy_process_group()


def _wishes(rollout_id: int) -> list[Command]:
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    kl = Command(id="kl", kind=CommandKind.SET_KL_COEF, argument=0.05, expires_at=later)
    stop = Command(id="stop", kind=CommandKind.STOP, expires_at=later)
    return {0: [kl], 2: [stop]}.get(rollout_id, [])


def _journalled(training: Any) -> dict[str, Any]:
    reporter = training.vitals.reporter
    if reporter.run.id == "disabled":
        return {"steps": [], "outcomes": []}
    folder = journal_folder(reporter.settings.spool, reporter.run.id, f"a1.{reporter.part.writer}")
    follower = Follower(folder)
    found = [item.record for item in follower.read(100_000)]
    follower.close()
    outcomes = [o for o in found if isinstance(o, Outcome) and o.command_id == "kl"]
    return {
        "steps": [dict(step.values) for step in found if isinstance(step, StepReport)][:2],
        "outcomes": [{"before": o.before, "after": o.after} for o in outcomes],
    }


if __name__ == "__main__":
    main()
