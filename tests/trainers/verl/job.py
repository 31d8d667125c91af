"""One ``python -m verl.trainer.main_ppo`` on a CPU, as a process of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
STEPS = 4


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

    def prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "prompts.parquet").exists():
            subprocess.run([self.python, HERE / "policy.py", self.folder], check=True, timeout=120)

    def command(self) -> list[str]:
        return [str(self.python), "-m", "verl.trainer.main_ppo", *self.settings(), *self.overrides]

    def settings(self) -> list[str]:
        actor, rollout, ref = (f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "ref"))
        return [
            f"trainer.use_v1={self.v1}",
            "algorithm.adv_estimator=grpo",
            f"data.train_files={self.folder}/prompts.parquet",
            f"data.val_files={self.folder}/prompts.parquet",
            "data.train_batch_size=4",
            "data.val_batch_size=16",
            "data.max_prompt_length=16",
            "data.max_response_length=8",
            "data.dataloader_num_workers=0",
            "data.shuffle=False",
            f"actor_rollout_ref.model.path={self.folder}/policy",
            "actor_rollout_ref.model.use_remove_padding=False",
            "actor_rollout_ref.model.enable_gradient_checkpointing=False",
            "+actor_rollout_ref.model.override_config.attn_implementation=eager",
            f"{actor}.strategy=fsdp2",
            f"{ref}.strategy=fsdp2",
            f"{actor}.fsdp_config.dtype=float32",
            f"{actor}.fsdp_config.use_torch_compile=False",
            f"{ref}.fsdp_config.dtype=float32",
            f"{ref}.fsdp_config.use_torch_compile=False",
            f"{actor}.use_torch_compile=False",
            f"{actor}.ppo_mini_batch_size=4",
            f"{actor}.ppo_micro_batch_size_per_gpu=8",
            f"{actor}.use_kl_loss=True",
            f"{actor}.kl_loss_coef=0.01",
            f"{actor}.optim.lr=1e-2",
            f"{ref}.log_prob_micro_batch_size_per_gpu=8",
            f"{rollout}.name=cpu",
            f"{rollout}.mode=async",
            f"{rollout}.n=4",
            f"{rollout}.tensor_model_parallel_size=1",
            f"{rollout}.log_prob_micro_batch_size_per_gpu=8",
            f"{rollout}.calculate_log_probs=True",
            f"{rollout}.free_cache_engine=False",
            f"{rollout}.agent.num_workers=1",
            "reward.num_workers=1",
            f"reward.custom_reward_function.path={self.folder}/reward.py",
            "reward.custom_reward_function.name=compute_score",
            "trainer.device=cpu",
            "trainer.nnodes=1",
            "trainer.n_gpus_per_node=1",
            "trainer.logger=[console,file]",
            "trainer.project_name=verl-on-cpu",
            f"trainer.experiment_name={self.name}",
            f"trainer.default_local_dir={self.checkpoints}",
            f"trainer.total_training_steps={STEPS}",
            "trainer.total_epochs=100",
            "trainer.val_before_train=False",
            "trainer.test_freq=-1",
            "trainer.save_freq=-1",
            "trainer.resume_mode=disable",
            "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
            "+ray_kwargs.ray_init.num_gpus=1",
            "ray_kwargs.ray_init.num_cpus=32",
            f"+ray_kwargs.ray_init._temp_dir={self.folder}/ray" if len(str(self.folder)) < 40 else "",
        ]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": f"{HERE}",
            "VERL_USE_EXTERNAL_MODULES": "cpu_platform",
            "VERL_PLATFORM": "cpu",
            "VERL_ENGINE_DEVICE": "cuda",
            "VERL_FILE_LOGGER_ROOT": str(self.folder),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            "OMP_NUM_THREADS": "1",
            "RAY_DEDUP_LOGS": "0",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",
            "HYDRA_FULL_ERROR": "1",
            **self.env,
        }

    def start(self) -> subprocess.Popen[bytes]:
        self.prepare()
        command = [part for part in self.command() if part]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command, env=self.environment(), stdout=log, stderr=subprocess.STDOUT, cwd=self.folder
            )
