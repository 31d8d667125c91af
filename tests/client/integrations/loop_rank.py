"""One rank of a hand-written loop on two: started by test_loop_ranks.py with torch.distributed's variables.

Prints a JSON line: what this rank saw, did and ended with.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import torch
import torch.distributed as dist

import rlvitals
from rlvitals.contract.command import Command, CommandKind
from rlvitals.contract.report import StepReport
from rlvitals.follow import Follower
from rlvitals.spool import journal_folder
from rlvitals.verdict import ControlLimits
from tests.client.integrations import grpo


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    loop = grpo.Loop(steps=4, seed=20 + rank)
    seen: list[list[float]] = []

    def keep(given: dict[str, Any]) -> dict[str, Any]:
        mask = given["mask"] != 0
        distance = (given["ref"] - given["logp"]).detach().double()[mask]
        seen.append((distance.exp() - 1 - distance).tolist())
        return given

    loop.told = keep
    until = datetime.now(timezone.utc) + timedelta(hours=1)
    asked = [
        Command(
            id="k", kind=CommandKind.SET_KNOB, knob="temperature", argument=0.7, expires_at=until, valid_s=60.0
        ),
        Command(id="s", kind=CommandKind.STOP, expires_at=until, valid_s=60.0),
    ]
    turned: list[float] = []
    limits = ControlLimits(cooldown_steps=0)
    with rlvitals.run(project="p", limits=limits, **loop.facts()) as vitals:
        for name in ("top_p", "temperature") if rank else ("temperature", "top_p"):
            vitals.knob(name, turned.append if name == "temperature" else _never, low=0.0, high=2.0, value=1.0)
        loop.train(vitals, on_step=lambda step: vitals.reporter.control.offer(asked if step == 2 else []))
        steps = _steps(vitals.reporter) if vitals.reporter.enabled else []
    told = {"rank": rank, "seen": seen, "stopped": vitals.should_stop, "values": steps, "turned": turned}
    print(json.dumps(told), flush=True)
    dist.destroy_process_group()


def _never(value: float) -> None:
    raise AssertionError(f"nobody asked for {value}")


def _steps(reporter: rlvitals.Reporter) -> list[dict[str, float]]:
    follower = Follower(journal_folder(reporter.settings.spool, reporter.run.id, reporter.attempt))
    found = [item.record for item in follower.read(1_000_000)]
    follower.close()
    return [dict(record.values) for record in found if isinstance(record, StepReport)]


if __name__ == "__main__":
    main()
