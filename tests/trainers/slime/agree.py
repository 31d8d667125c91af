"""Three processes of one Ray job, as slime's rollout manager and training ranks are: which run each writes to."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

import ray

from rlvitals.integrations.slime.identity import agree


@ray.remote
class Process:
    def who(self) -> list[Any]:
        found = agree(Namespace(wandb_group="my group"))
        return [found.run, found.attempt, found.shared]


def main() -> None:
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    processes = [Process.remote() for _ in range(3)]
    print("\n" + json.dumps(ray.get([process.who.remote() for process in processes])))
    ray.shutdown()


if __name__ == "__main__":
    main()
