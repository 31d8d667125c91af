"""A rank that meets the others and leaves: ``python -m tests.trainers.ranks.goodbye WAY``."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import torch.distributed as dist

from rlvitals.integrations.ranks import Ranks
from rlvitals.probes.tally import Tally

WAYS = ("leave first", "leave last", "never leave", "never destroy")
"""What becomes of our group and of the training's; some trainings do neither."""


def main(way: str) -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    ranks = Ranks.meet(60.0)
    gathered = ranks.gather(Tally(counts={"rows": 1}))
    dist.barrier()
    if way == "leave first":
        ranks.leave()
    if way != "never destroy":
        dist.destroy_process_group()
    if way == "leave last":
        ranks.leave()
    told = gathered.counts["rows"] if ranks.rank == 0 else 2
    print(json.dumps({"gathered": told}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
