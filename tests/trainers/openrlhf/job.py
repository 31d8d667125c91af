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
from rlvitals.formats.console import Console
from rlvitals.formats.row import Row
from tests.trainers.openrlhf.source import Source

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
        "PYTHONHASHSEED": "0",
        "RAY_enable_worker_prestart": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # DeepSpeed compiles its optimizer once, which takes minutes
        "TORCH_EXTENSIONS_DIR": str(python.parents[1] / "extensions"),
    }


# the same job by the names that arguments had until 0.10.1
FLAT = (
    *("--ref_num_gpus_per_node", "1", "--actor_num_gpus_per_node", "2", "--vllm_num_engines", "1"),
    *("--vllm_sync_backend", "gloo", "--attn_implementation", "eager", "--param_dtype", "bf16"),
    *("--advantage_estimator", "group_norm", "--use_kl_loss", "--kl_estimator", "k3", "--init_kl_coef", "0.01"),
    *("--input_key", "input", "--label_key", "label", "--max_len", "64", "--max_new_tokens", "8"),
    *("--rollout_batch_size", "2", "--n_samples_per_prompt", "4", "--micro_rollout_batch_size", "4"),
    *("--train_batch_size", "8", "--micro_train_batch_size", "4", "--entropy_loss_coef", "0"),
    *("--actor_learning_rate", "1e-3", "--lr_scheduler", "constant", "--lr_warmup_ratio", "0"),
)


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
    release: str = ""

    @property
    def log(self) -> Path:
        return self.folder / f"{self.run}.log"

    @property
    def steps_run(self) -> list[int]:
        """The steps of which OpenRLHF itself says that they were done."""
        return [int(step) for step in re.findall(r"Global step (\d+):", self.log.read_text())]

    def logged(self, step: int) -> dict[str, float]:
        """What OpenRLHF logged of a step, but for its times."""
        reader = Console()
        lines = enumerate(self.log.read_text().splitlines(), 1)
        rows = [row for at, line in lines if f"Global step {step}:" in line for row in reader.read(at, line)]
        (values,) = [row.values for row in rows if isinstance(row, Row)]
        return {name: value for name, value in values.items() if not name.startswith("timing/")}

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
        command = ["bash", str(EXAMPLE), *ON_A_CPU, *arguments]
        if self.release:
            env |= self._older(env)
            files = {"pretrain": self.policy, "prompt_data": prompts, "remote_rm_url": HERE / "reward.py"}
            files |= {"ckpt_path": self.folder / "checkpoints", "save_path": self.folder / "model"}
            named = [word for name, path in files.items() for word in (f"--{name}", str(path))]
            launch = [str(self.python), "-m", "rlvitals.integrations.openrlhf.launch"]
            command = [*launch, "-m", "openrlhf.cli.train_ppo_ray", *named, *FLAT, *arguments]
        with self.log.open("wb") as log:
            nice = ["nice", *command]
            return subprocess.Popen(nice, env=env, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder)

    def _older(self, env: Mapping[str, str]) -> dict[str, str]:
        """Another release's source before the installed one, here and in Ray's workers."""
        paths = ":".join((*map(str, Source.of(self.release).paths), env["PYTHONPATH"]))
        runtime = {"runtime_env": {"env_vars": {"PYTHONPATH": paths}}}
        return {"PYTHONPATH": paths, "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps(runtime)}

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
