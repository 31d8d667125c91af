"""Real Ray: our hook beside the user's own in its workers, and a coefficient set on all ranks of a worker group.

``python -m tests.trainers.verl_old.ray_drive``; the last line is what was found, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def users_set_up() -> None:
    """Stands for a hook of the user's own."""
    os.environ["USERS_HOOK"] = "called"


def look() -> dict[str, Any]:
    """What a worker process of Ray's is like."""
    import sys

    from rlvitals.integrations.verl.finder import PatchingFinder

    return {
        "finder": any(isinstance(finder, PatchingFinder) for finder in sys.meta_path),
        "verl": "verl" in sys.modules,
        "users": os.environ.get("USERS_HOOK", ""),
        "url": os.environ.get("RLVITALS_URL", ""),
        "token": os.environ.get("RLVITALS_TOKEN", ""),
    }


def tap() -> bool:
    """Whether a driver process of Ray's has its logger tapped, by nothing but the hook."""
    from verl.utils.tracking import Tracking

    return hasattr(Tracking.log, "__wrapped__")


def main() -> None:
    import ray

    os.environ["RAY_RUNTIME_ENV_HOOK"] = "rlvitals.integrations.verl.ray_hook.add_setup"
    os.environ["RLVITALS_URL"] = "http://127.0.0.1:9"
    users = "tests.trainers.verl_old.ray_drive.users_set_up"
    environment = {"worker_process_setup_hook": users, "env_vars": {"TOKENIZERS_PARALLELISM": "true"}}
    ray.init(num_cpus=4, include_dashboard=False, runtime_env=environment, log_to_driver=False)
    try:
        found = ray.get(ray.remote(look).remote())
        found["tapped"] = ray.get(ray.remote(tap).remote())
        found["ranks"] = coefficients()
    finally:
        ray.shutdown()
    print(json.dumps(found), flush=True)


def coefficients() -> dict[str, Any]:
    """Before, after, and what the ranks' losses would read, of two real Ray workers."""
    import ray
    from verl.single_controller.base import Worker
    from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup

    from rlvitals.integrations.verl import ranks_of_workers as ranks

    class Actors(Worker):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            from types import SimpleNamespace

            import torch

            from tests.trainers.verl_old import drive

            release = drive.release()
            config = drive.make_config({"folder": "/nowhere"}, release[:2])
            self.actor = SimpleNamespace(config=drive.actor_config(config, release))
            weight = torch.nn.Parameter(torch.zeros(2))
            self.actor_optimizer = torch.optim.Adam([weight], lr=0.5)
            self.actor_lr_scheduler = torch.optim.lr_scheduler.LambdaLR(self.actor_optimizer, lambda step: 1.0)

    pool = RayResourcePool([2], use_gpu=False, max_colocate_count=1)
    group = RayWorkerGroup(resource_pool=pool, ray_cls_with_init=RayClassWithInitArgs(ray.remote(Actors)))
    return {
        "before": ranks.on_each_rank(group, ranks.read_kl),
        "set": ranks.on_each_rank(group, ranks.set_kl, 0.25),
        "after": ranks.on_each_rank(group, ranks.read_kl),
        "rates": ranks.on_each_rank(group, ranks.scale_rate, 0.5),
    }


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
