"""Jobs of ``examples/openrlhf_grpo.sh`` on a CPU: OpenRLHF's own command line, a Ray cluster of the test's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlvitals.contract.report import Event, EventKind, StepReport
from rlvitals.follow import Follower

HERE = Path(__file__).parent
HOUSE = HERE.parents[2]
EXAMPLE = HOUSE / "examples" / "openrlhf_grpo.sh"
JOB_S = 600.0
LAYOUT = (
    "--ref.num_gpus_per_node 1 --actor.num_gpus_per_node 2 --vllm.num_engines 1 --vllm.sync_backend gloo"
    " --ds.attn_implementation eager"
)
GRPO = "--algo.advantage.estimator group_norm --algo.kl.use_loss --algo.kl.estimator k3"
REINFORCE = "--algo.advantage.estimator reinforce --algo.kl.estimator k1"
PPO = "--algo.advantage.estimator gae --algo.kl.estimator k1 --critic.num_gpus_per_node 1"
ON_A_CPU = (
    *("--data.max_len", "64", "--rollout.max_new_tokens", "8"),
    *("--rollout.batch_size", "2", "--rollout.n_samples_per_prompt", "4", "--rollout.micro_batch_size", "4"),
    *("--train.batch_size", "8", "--train.micro_batch_size", "4"),
    *("--actor.adam.lr", "1e-3", "--actor.lr_scheduler", "constant", "--actor.lr_warmup_ratio", "0"),
)


@contextmanager
def cluster(python: Path) -> Iterator[str]:
    """The address of a Ray cluster that ends with the block."""
    command = [str(python), str(HERE / "cluster.py")]
    with subprocess.Popen(
        command, env=environment_for(python), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            address = process.stdout.readline().strip()
            assert address, "Ray did not start"
            yield address
        finally:
            process.stdin.close()


def environment_for(python: Path) -> dict[str, str]:
    paths = (HERE / "standins", HERE, HOUSE / "client")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("RLVITALS_", "RAY_"))},
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(map(str, paths)),
        "PYTHON": str(python),
        "TORCHDYNAMO_DISABLE": "1",
        "DS_ACCELERATOR": "cpu",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "RAY_enable_worker_prestart": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # DeepSpeed compiles its optimizer once, which takes minutes
        "TORCH_EXTENSIONS_DIR": str(python.parents[1] / "extensions"),
    }


@dataclass(slots=True, kw_only=True)
class Job:
    """``folder`` holds all that the job reads and writes, its journal (``spool``) included."""

    python: Path
    address: str
    policy: Path
    folder: Path
    run: str
    algorithm: str = GRPO
    told: Mapping[str, str] = field(default_factory=dict)

    @property
    def log(self) -> Path:
        return self.folder / f"{self.run}.log"

    @property
    def steps_run(self) -> list[int]:
        """The steps of which OpenRLHF itself says that they were done."""
        return [int(step) for step in re.findall(r"Global step (\d+):", self.log.read_text())]

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        self.folder.mkdir(parents=True, exist_ok=True)
        prompts = self.folder / "prompts.jsonl"
        lines = [json.dumps({"input": f"say {letter}:", "label": letter}) for letter in "abcdefgh"]
        prompts.write_text("\n".join(lines) + "\n")
        env = {
            **environment_for(self.python),
            "RAY_ADDRESS": self.address,
            "FOLDER": str(self.folder),
            "LAYOUT": LAYOUT,
            "ALGORITHM": self.algorithm,
            "MODEL": str(self.policy),
            "PROMPTS": str(prompts),
            "REWARD": str(HERE / "reward.py"),
            "RLVITALS_RUN_ID": self.run,
            "RLVITALS_DIR": str(self.folder / "spool"),
            **self.told,
        }
        with self.log.open("wb") as log:
            command = ["nice", "bash", str(EXAMPLE), *ON_A_CPU, *arguments]
            return subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)

    def finish(self, *arguments: str) -> None:
        """Runs the job to its end, which must be a good one."""
        with self.running(arguments) as process:
            assert process.wait(JOB_S) == 0, self.words()

    @contextmanager
    def running(self, arguments: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        process = self.start(*arguments)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def words(self) -> str:
        return f"{self.log}: {self.log.read_text()[-3000:]}"

    def records(self) -> list[Any]:
        """All that the controller journalled."""
        found: list[Any] = []
        for folder in sorted(
            {path.parent for path in (self.folder / "spool" / self.run).rglob("*") if path.is_file()}
        ):
            follower = Follower(folder)
            found += [item.record for item in follower.read(1_000_000)]
            follower.close()
        return found

    def steps(self) -> list[StepReport]:
        return [record for record in self.records() if isinstance(record, StepReport)]

    def notes(self, key: str) -> list[Any]:
        events = [
            record for record in self.records() if isinstance(record, Event) and record.kind is EventKind.NOTE
        ]
        return [event.payload[key] for event in events if key in event.payload]
