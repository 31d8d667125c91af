"""Whatever is dropped as a log, it becomes steps or an error that the import answers with."""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlvitals.contract.codec import DecodeError
from rlvitals.formats.log import Format
from rlvitals_monitor.api.uploads import Reading, Upload, reading
from rlvitals_monitor.errors import ServiceError
from tests.client.formats.test_log import field, frame, framed, item, mlflow, scalar, trackio
from tests.fuzz.budget import attack
from tests.fuzz.mutation import damaged

CONSOLE = b"""{'loss': 0.1, 'reward': 0.5, 'kl': nan, 'epoch': 0.1}
step:1 - actor/loss:0.5 - critic/rewards/mean:inf - actor/kl:-inf
(TaskRunner pid=1) step:2 - actor/loss:nan - critic/rewards/mean:1.0
rollout 3: {'rollout/response_len/mean': 100.0, 'rollout/raw_reward': 0.5}
step 3: {'train/loss': 0.1, 'train/grad_norm': 1e999}
 12%|x | 3/25 [00:10<01:00, 3.0s/it]
"""
CSV = b"step,loss,reward,kl\n1,0.5,nan,inf\n2,,-inf,0.1\n"
LINES = b'{"step": 1, "loss": NaN, "reward": 1}\n{"step": 2, "loss": Infinity, "reward": null}\n'
DOCUMENT = json.dumps(
    {"log_history": [{"step": 1, "loss": math.nan, "grad_norm": 1}, {"step": 2, "eval_reward": 1.0}]}, indent=1
).encode()


def database(fill: object, path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        fill(connection)  # type: ignore[operator]
    connection.close()
    return path.read_bytes()


@pytest.fixture
def logs(tmp_path: Path) -> dict[Format, list[bytes]]:
    events = frame(b"\x09" + bytes(8) + field(3, b"brain.Event:2"))
    events += b"".join(scalar(step, "train/loss", value) for step, value in enumerate((0.5, math.nan, math.inf)))
    wandb = b":W&B\x00\x00\x00"
    for step in range(3):
        history = item("train/loss", "NaN") + item("_step", str(step))
        wandb = framed(wandb, b"\x12" + bytes([len(history)]) + history)
    return {
        Format.CONSOLE: [CONSOLE, gzip.compress(CONSOLE)],
        Format.CSV: [CSV],
        Format.JSON_LINES: [LINES, LINES * 3],
        Format.JSON: [DOCUMENT],
        Format.TFEVENTS: [events],
        Format.WANDB: [wandb],
        Format.SQLITE: [database(mlflow, tmp_path / "mlflow.db"), database(trackio, tmp_path / "trackio.db")],
    }


@pytest.mark.parametrize("form", [Format.CONSOLE, Format.CSV, Format.JSON_LINES, Format.JSON,
                                  Format.TFEVENTS, Format.WANDB, Format.SQLITE])  # fmt: skip
def test_a_damaged_log_is_read_or_refused(form: Format, logs: dict[Format, list[bytes]], tmp_path: Path) -> None:
    path = tmp_path / "log"
    read = SimpleNamespace(steps=0)

    def take(body: bytes) -> None:
        path.write_bytes(body)
        for how in (Reading(), Reading(form=form)):
            try:
                with reading(Upload(path=path, digest="", limit=1 << 20), how) as run:
                    for _step, _time_s, values in run.steps:
                        assert all(isinstance(value, (int, float)) for value in values.values())
                        read.steps += 1
            except (ServiceError, DecodeError):
                continue

    attack(damaged(logs[form]), take, name=form.value)
    assert read.steps, "no log was read at all: the attack does not get inside"
