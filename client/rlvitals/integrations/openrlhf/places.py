"""Where we take hold of OpenRLHF, by the names that its releases 0.9.1 to 0.11.2 share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """``module`` and ``owner`` (a class behind Ray's decorator or plain, or none) hold ``attribute``."""

    name: str
    module: str
    owner: str
    attribute: str
    gives: str
    arguments: tuple[str, ...] = ()
    optional: bool = False

    @property
    def target(self) -> str:
        return f"{self.owner}.{self.attribute}" if self.owner else f"{self.module}.{self.attribute}"


FIT = Place(
    name="controller",
    module="openrlhf.trainer.ppo_trainer",
    owner="PPOTrainer",
    attribute="fit",
    gives="all: the run itself",
)
FIT_ASYNC = Place(
    name="asynchronous controller",
    module="openrlhf.trainer.ppo_trainer_async",
    owner="TrainingActor",
    attribute="fit",
    gives="all, where training is asynchronous",
    optional=True,
)
BOUNDARY = Place(
    name="step boundary",
    module="openrlhf.trainer.ppo_trainer",
    owner="PPOTrainer",
    attribute="save_logs_and_checkpoints",
    gives="steps, the trainer's own numbers, every command",
    arguments=("global_step", "logs_dict", "client_states"),
)
EXPERIENCES = Place(
    name="experiences",
    module="openrlhf.trainer.ppo_utils.experience_maker",
    owner="RemoteExperienceMaker",
    attribute="compute_advantages_and_returns",
    gives="completions, rewards, advantages, truncation",
    arguments=("experiences",),
)
REFERENCE = Place(
    name="reference",
    module="openrlhf.trainer.ppo_utils.experience_maker",
    owner="",
    attribute="compute_approx_kl",
    gives="KL to the reference where it is a part of the reward",
    arguments=("log_probs", "log_probs_base"),
)
RANKS = Place(
    name="actor ranks",
    module="openrlhf.trainer.ray.ppo_actor",
    owner="ActorPPOTrainer",
    attribute="training_step",
    gives="ratios, KL and its gradient as the loss has them",
    arguments=("experience", "kl_ctl"),
)
EVALUATION = Place(
    name="evaluation",
    module="openrlhf.trainer.ppo_trainer",
    owner="PPOTrainer",
    attribute="save_best_checkpoint",
    gives="what evaluations measured (since 0.9.8)",
    arguments=("eval_metrics", "global_step"),
    optional=True,
)
PLACES = (FIT, FIT_ASYNC, BOUNDARY, EXPERIENCES, REFERENCE, RANKS, EVALUATION)
