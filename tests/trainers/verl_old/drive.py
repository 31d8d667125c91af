"""Runs the installed verl's own `RayPPOTrainer.fit` on the toy policy, in an interpreter that has that release.

``python -m tests.trainers.verl_old.drive '<settings as JSON>'``; the last line is what came of it, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from tests.trainers.verl_old import bert_padding, toy


def main(settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(7)
    if settings.get("vitals"):
        load_plugin()
    import verl

    full = release()
    tokenizer = toy.make_tokenizer()
    config = make_config(settings, full[:2])
    trainer = make_trainer(config, tokenizer, full, poison=settings.get("poison", 0))
    told: dict[str, Any] = {}
    if settings.get("vitals"):
        told["journal"] = watch_vitals(trainer, settings)
    seen = watch(settings)
    # a stand-in for flash-attn's unpadding, which is plain indexing
    sys.modules.setdefault("flash_attn.bert_padding", bert_padding)
    trainer.fit()
    if settings.get("vitals"):
        told["journal"] = told["journal"]()
    told |= {
        "version": verl.__version__,
        "steps": trainer.ran,
        "digests": [worker.policy.digest() for worker in trainer.actor_rollout_wg.workers],
        "kl": [coefficient_of(worker) for worker in trainer.actor_rollout_wg.workers],
        "rates": [worker.actor_optimizer.param_groups[0]["lr"] for worker in trainer.actor_rollout_wg.workers],
        "saved": trainer.actor_rollout_wg.saved,
        "cut": trainer.actor_rollout_wg.cut,
        "logged": seen,
        "save_freq": config.trainer.save_freq,
    }
    print(json.dumps(told), flush=True)


def release() -> tuple[int, ...]:
    import verl

    return tuple(int(part) for part in verl.__version__.split(".")[:3] if part.isdecimal())


def load_plugin() -> None:
    """As verl does it by ``VERL_USE_EXTERNAL_MODULES`` (0.6 on), else as Ray does by its hook."""
    if os.environ.get("VERL_USE_EXTERNAL_MODULES"):
        return
    from rlvitals.integrations.verl import ray_hook

    ray_hook.set_up_worker()


def watch_vitals(trainer: Any, settings: dict[str, Any]) -> Any:
    """Offers commands when their step is logged, ends a pause after three beats; gives what was journalled."""
    from rlvitals.control import ControlLimits
    from rlvitals.integrations.verl import session as sessions
    from rlvitals.integrations.verl import v0

    found: list[Any] = []
    steer = v0.legacy_control.steer

    def steered(session: Any, owner: Any) -> Any:
        found.append(session)
        session.reporter.control.limits = ControlLimits(cooldown_steps=0)
        beats: list[float] = []

        def beat(seconds: float) -> None:
            beats.append(seconds)
            if len(beats) == 3:
                session.reporter.control.offer([_command("resume", None)])

        session.vitals._commands.wait = beat
        return steer(session, owner)

    v0.legacy_control.steer = steered
    for place in settings.get("fails", ()):
        owner, _, name = place.rpartition(".")
        setattr({"v0": v0, "session": sessions.Session}[owner], name, _fail)

    def journal() -> dict[str, Any]:
        if not found:
            return {}
        from tests.trainers.verl_old.journal import told_by

        return told_by(found[0].reporter)

    settings["session"] = found
    return journal


def _fail(*_: Any, **__: Any) -> None:
    raise RuntimeError("on purpose")


def _command(kind: str, argument: float | None) -> Any:
    from datetime import datetime, timedelta, timezone

    from rlvitals.contract.command import Command, CommandKind

    until = datetime.now(timezone.utc) + timedelta(hours=1)
    return Command(id=f"{kind}-{argument}", kind=CommandKind(kind), argument=argument, expires_at=until)


def coefficient_of(worker: Any) -> float:
    config = worker.actor.loss_fn.keywords["config"] if hasattr(worker.actor, "loss_fn") else worker.actor.config
    return float(config.kl_loss_coef)


def make_config(settings: dict[str, Any], version: tuple[int, ...]) -> Any:
    """verl's own defaults with the toy's sizes."""
    import verl
    from hydra import compose, initialize_config_dir

    folder = Path(verl.__file__).parent / "trainer" / "config"
    told = overrides(settings, version)
    with initialize_config_dir(str(folder), version_base=None):
        return compose("ppo_trainer", overrides=[f"{key}={_spelt(value)}" for key, value in told.items()])


def overrides(settings: dict[str, Any], version: tuple[int, ...]) -> dict[str, Any]:
    """Settings of the toy by verl's own names."""
    return {
        "algorithm.adv_estimator": "grpo",
        "algorithm.use_kl_in_reward": False,
        "actor_rollout_ref.actor.use_kl_loss": True,
        "actor_rollout_ref.actor.kl_loss_coef": 0.01,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
        "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 4,
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 4,
        "actor_rollout_ref.rollout.n": toy.GROUP,
        "data.train_batch_size": 4,
        "data.max_prompt_length": toy.PROMPT,
        "data.max_response_length": toy.RESPONSE,
        "data.shuffle": False,
        "trainer.n_gpus_per_node": 1,
        "trainer.nnodes": 1,
        "trainer.device": "cpu",
        "trainer.logger": "[console]",
        "trainer.project_name": "old",
        "trainer.experiment_name": "toy",
        "trainer.total_epochs": 1,
        "trainer.total_training_steps": settings.get("steps", 4),
        "trainer.save_freq": -1,
        "trainer.test_freq": settings.get("test_freq", -1),
        "trainer.val_before_train": settings.get("validate_first", False),
        "trainer.resume_mode": "disable",
        "trainer.balance_batch": False,
        "trainer.default_local_dir": settings["folder"],
        **({"data.dataloader_num_workers": 0} if version >= (0, 5) else {}),
        **settings.get("overrides", {}),
    }


def _spelt(value: object) -> str:
    return "null" if value is None else str(value)


def make_trainer(config: Any, tokenizer: Any, version: tuple[int, ...], *, poison: int = 0) -> Any:
    """The real trainer with everything that it has of its own, and stand-ins where it would need GPUs."""
    from verl.trainer.ppo.ray_trainer import RayPPOTrainer, Role

    from tests.trainers.verl_old.stand_ins import Group

    class Steps(RayPPOTrainer):  # type: ignore[misc]
        """Counts steps where the data comes from, which no hook of ours has a hand in."""

        ran = 0

    reward = (
        {}
        if version >= (0, 7, 1)
        else {"reward_fn": rewards_of(tokenizer), "val_reward_fn": rewards_of(tokenizer)}
    )
    trainer = Steps(
        config=config,
        tokenizer=tokenizer,
        role_worker_mapping={Role.ActorRollout: object, Role.RefPolicy: object},
        resource_pool_manager=SimpleNamespace(get_n_gpus=lambda: 1),
        train_dataset=toy.Prompts(tokenizer, 64, messages_only=version >= (0, 7)),
        val_dataset=toy.Prompts(tokenizer, 4, messages_only=version >= (0, 7)),
        collate_fn=toy.collate,
        **reward,
    )
    engine = version >= (0, 8)

    class ThisGroup(Group):
        repeats = version < (0, 5)

        def scores(self, scores: Any) -> dict[str, Any]:
            return {"rm_scores": scores} if version >= (0, 7, 1) else {}

        def more(self, answers: Any, chosen: Any) -> dict[str, Any]:
            return {"response_mask": chosen} if version >= (0, 7) else {}

        def generate_sequences(self, prompts: Any) -> Any:
            if not prompts.meta_info.get("validate"):
                trainer.ran += 1
            return super().generate_sequences(prompts)

    group = ThisGroup(tokenizer, config.actor_rollout_ref, lambda: actor_config(config, version), engine=engine)
    group.poison = poison
    if engine:
        group.set_loss_fn(engine_loss(config))
    trainer.actor_rollout_wg = trainer.ref_policy_wg = trainer.async_rollout_manager = group
    trainer.async_rollout_mode = version >= (0, 7, 1)
    nothing = SimpleNamespace(update_weights=lambda *_: None, sleep_replicas=lambda: None)
    if version >= (0, 7, 1):
        trainer.checkpoint_manager = nothing
    return trainer


def actor_config(config: Any, version: tuple[int, ...]) -> Any:
    """A rank's own copy, of the kind that this release's worker has."""
    import copy

    mine = copy.deepcopy(config.actor_rollout_ref.actor)
    if version < (0, 6):
        return mine
    from verl.utils.config import omega_conf_to_dataclass

    return omega_conf_to_dataclass(mine)


def engine_loss(config: Any) -> Any:
    from functools import partial

    from verl.utils.config import omega_conf_to_dataclass
    from verl.workers.utils.losses import ppo_loss

    return partial(ppo_loss, config=omega_conf_to_dataclass(config.actor_rollout_ref.actor))


def rewards_of(tokenizer: Any) -> Any:
    def reward(batch: Any, return_dict: bool = False) -> Any:
        ids = batch.batch["responses"]
        mask = batch.batch["attention_mask"][:, -ids.shape[1] :]
        found = torch.zeros(ids.shape)
        found[torch.arange(len(ids)), mask.sum(1) - 1] = toy.score(ids, mask, tokenizer)
        return {"reward_tensor": found, "reward_extra_info": {}} if return_dict else found

    return reward


def watch(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """What the trainer hands to its logger at each call, without times; a step's commands are offered before."""
    from verl.utils import tracking

    seen: list[dict[str, Any]] = []
    original = tracking.Tracking.log

    def log(self: Any, data: Any, step: int, backend: Any = None) -> Any:
        kept = {key: float(value) for key, value in data.items() if not key.startswith(("timing", "perf"))}
        seen.append({"step": int(step), **kept})
        for when, kind, argument in settings.get("commands", ()):
            if when == step and settings.get("session"):
                settings["session"][0].reporter.control.offer([_command(kind, argument)])
        return original(self, data, step, backend)

    tracking.Tracking.log = log
    return seen


if __name__ == "__main__":
    os.environ.setdefault("RLVITALS_MODE", "disabled")
    main(json.loads(sys.argv[1]))
