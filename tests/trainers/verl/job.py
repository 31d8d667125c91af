"""One job of ``examples/verl_grpo.sh`` on a CPU, as a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[2] / "examples" / "verl_grpo.sh"
STEPS = 4
JOB_S = 420.0
TRAINERS = ("v1", "v0")
RAISING = "cpu_platform,rlvitals.integrations.verl,raising"
_ACTOR, _ROLLOUT, _REF = (f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "ref"))

ON_A_CPU = (
    "data.train_batch_size=4",
    "data.max_prompt_length=16",
    "data.max_response_length=8",
    "data.dataloader_num_workers=0",
    "data.shuffle=False",
    "actor_rollout_ref.model.use_remove_padding=False",
    "actor_rollout_ref.model.enable_gradient_checkpointing=False",
    "+actor_rollout_ref.model.override_config.attn_implementation=eager",
    *(
        f"{part}.{setting}"
        for part in (_ACTOR, _REF)
        for setting in ("strategy=fsdp2", "fsdp_config.dtype=float32", "fsdp_config.use_torch_compile=False")
    ),
    f"{_ACTOR}.use_torch_compile=False",
    f"{_ACTOR}.ppo_mini_batch_size=4",
    f"{_ACTOR}.optim.lr=1e-2",
    f"{_ACTOR}.kl_loss_coef=0.01",
    f"{_REF}.log_prob_micro_batch_size_per_gpu=8",
    f"{_ROLLOUT}.name=cpu",
    f"{_ROLLOUT}.mode=async",
    f"{_ROLLOUT}.n=4",
    f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu=8",
    f"{_ROLLOUT}.free_cache_engine=False",
    f"{_ROLLOUT}.agent.num_workers=1",
    "reward.num_workers=1",
    "reward.custom_reward_function.name=compute_score",
    "trainer.device=cpu",
    "trainer.total_epochs=1000",
    "trainer.val_before_train=False",
    "trainer.test_freq=-1",
    "trainer.save_freq=-1",
    "trainer.resume_mode=disable",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    # logical ones: each bundle asks for some, and too few hang without a word
    "+ray_kwargs.ray_init.num_gpus=1",
    "ray_kwargs.ray_init.num_cpus=32",
)


@dataclass(slots=True, kw_only=True)
class Job:
    """``python`` is the environment's interpreter, ``folder`` holds all that the job reads and writes."""

    python: Path
    folder: Path
    v1: bool = True
    overrides: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    name: str = "job"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def checkpoints(self) -> Path:
        return self.folder / f"{self.name}-checkpoints"

    @property
    def digests(self) -> Path:
        """A line for each time that the engine got weights: the step, and their hash."""
        return self.folder / f"{self.name}.digests"

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "train.parquet").exists():
            subprocess.run([self.python, HERE / "policy.py", self.folder], check=True, timeout=300)

    def settings(self) -> list[str]:
        return [
            *ON_A_CPU,
            f"trainer.use_v1={self.v1}",
            f"trainer.experiment_name={self.name}",
            f"trainer.default_local_dir={self.checkpoints}",
            f"trainer.total_training_steps={STEPS}",
            f"reward.custom_reward_function.path={self.folder}/reward.py",
            *self.overrides,
        ]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHON": str(self.python),
            "MODEL": f"{self.folder}/policy",
            "DATA": str(self.folder),
            "PYTHONPATH": str(HERE),
            "VERL_USE_EXTERNAL_MODULES": "cpu_platform",
            "VERL_PLATFORM": "cpu",
            "VERL_ENGINE_DEVICE": "cuda",
            "CPU_ROLLOUT_DIGESTS": str(self.digests),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
            "RAY_DEDUP_LOGS": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",
            "HYDRA_FULL_ERROR": "1",
            **self.env,
        }

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The job's process; what is left of it and of its cluster at the end is ended."""
        self.prepare()
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                [str(EXAMPLE), *self.settings()],
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
            try:
                yield process
            finally:
                _end(process)

    def run(self, timeout_s: float) -> int:
        """The exit code. Raises AssertionError with the log's last words where it does not end in time."""
        with self.running() as process:
            try:
                return process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"no end within {timeout_s:.0f} s: {self.last_words()}") from None

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-3000:]


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ray's processes end with the driver that started them; they are given a moment."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
