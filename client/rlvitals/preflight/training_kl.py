"""C3 to C5: the KL term of this trainer in this version, whether there is one, and how strongly it pulls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import Found, TrainerConfig
from rlvitals.preflight.trainer_keys import Setting, Trainer
from rlvitals.preflight.versions import Release, shown

CEILING = 10.0
"""Where trainers clamp k3; it is reached at 2.61 nats, where the derivative is 12.6."""
SURVIVING_MAX = 12.6
FAR_NATS = 7.0
"""A token at 1/1100 of its reference probability: rare in a batch, and there in every large one."""
KNOWN_LOW, KNOWN_HIGH, PINNING = 1e-4, 0.1, 1.0
SHIPPED = (
    "verl ships 0.001, OpenRLHF 0.01, TRL 0.04 before 0.19 and 0.05 for RLOO; "
    "0.1 cured a drift in nvidia-cosmos/cosmos-rl#318"
)


class Clamp(str, Enum):
    """Where an estimator with an exponential is clamped."""

    NONE = "none"
    AFTER = "after"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """How one trainer evaluates k3 in its releases from ``since`` and below ``before``."""

    trainer: Trainer
    names: frozenset[str]
    clamp: Clamp
    since: Release = ()
    before: Release | None = None
    reference: str


_K3 = frozenset({"k3", "low_var_kl"})
ESTIMATORS: tuple[Estimator, ...] = (
    Estimator(trainer=Trainer.TRL, names=_K3, clamp=Clamp.NONE, reference="huggingface/trl#3015"),
    Estimator(
        trainer=Trainer.VERL, names=_K3, clamp=Clamp.AFTER, before=(0, 4, 1), reference="verl-project/verl#891"
    ),
    Estimator(
        trainer=Trainer.VERL, names=_K3, clamp=Clamp.BOTH, since=(0, 4, 1), reference="verl-project/verl#1779"
    ),
    Estimator(
        trainer=Trainer.OPENRLHF,
        names=_K3,
        clamp=Clamp.AFTER,
        before=(0, 11, 2),
        reference="OpenRLHF/OpenRLHF#1335",
    ),
    Estimator(
        trainer=Trainer.OPENRLHF, names=_K3, clamp=Clamp.BOTH, since=(0, 11, 2), reference="OpenRLHF/OpenRLHF#1335"
    ),
    Estimator(trainer=Trainer.SLIME, names=frozenset({"k3"}), clamp=Clamp.NONE, reference="verl-project/verl#891"),
    Estimator(
        trainer=Trainer.SLIME,
        names=frozenset({"low_var_kl"}),
        clamp=Clamp.AFTER,
        reference="verl-project/verl#891",
    ),
)


def estimator_of(config: TrainerConfig) -> str:
    """The name of the estimator in the loss; empty where KL is not in the loss."""
    if not in_loss(config):
        return ""
    found = config.find(Setting.KL_ESTIMATOR)
    return "k3" if config.trainer is Trainer.TRL else str(found.value).lower() if found is not None else ""


def in_loss(config: TrainerConfig) -> bool:
    """Whether a KL term with a coefficient above 0 is part of the loss."""
    coefficient = config.number(Setting.KL_COEF) or 0.0
    if config.trainer is Trainer.TRL:
        return coefficient > 0 and config.algorithm in ("", "grpo")
    return coefficient > 0 and config.on(Setting.KL_IN_LOSS)


def in_reward(config: TrainerConfig) -> Found | None:
    """The coefficient of a KL penalty in the reward, if there is one above 0."""
    found: Found | None = None
    if config.trainer is Trainer.TRL and config.algorithm in ("rloo", "ppo"):
        found = config.find(Setting.KL_COEF)
    elif config.trainer is Trainer.VERL and config.on(Setting.KL_IN_REWARD):
        found = config.find(Setting.KL_REWARD_COEF)
    elif config.trainer is Trainer.OPENRLHF and not config.on(Setting.KL_IN_LOSS):
        found = config.find(Setting.KL_COEF)
    elif config.trainer is Trainer.SLIME:
        found = config.find(Setting.KL_REWARD_COEF)
    return found if found is not None and (found.number or 0) > 0 else None


def clamp_of(config: TrainerConfig) -> Estimator | None:
    """How this estimator is clamped; an unknown version is taken for the newest."""
    name = estimator_of(config)
    for known in ESTIMATORS:
        if known.trainer is not config.trainer or name not in known.names:
            continue
        if known.before is not None and (config.version is None or config.version >= known.before):
            continue
        if config.version is None or config.version >= known.since:
            return known
    return None


def check_estimator(config: TrainerConfig) -> Iterator[Finding]:
    """C3: no estimator that turns one far token into NaN, or that does nothing."""
    name, subject = estimator_of(config), "KL estimator"
    if not name:
        yield Finding(check="C3", verdict=Verdict.SKIPPED, subject=subject, evidence="no KL term in the loss")
        return
    found = config.find(Setting.KL_ESTIMATOR) or config.find(Setting.KL_COEF)
    known = clamp_of(config)
    version = (
        f"{config.trainer.value} {shown(config.version)}"
        if config.version
        else f"the newest {config.trainer.value}"
    )
    verdict, told, fix = _judged(name, known, version)
    yield Finding(
        check="C3",
        verdict=verdict,
        subject=subject,
        evidence=told + (f" ({known.reference})" if known is not None else ""),
        fix=fix,
        where=config.at(found),
    )


def _judged(name: str, known: Estimator | None, version: str) -> tuple[Verdict, str, str]:
    if known is not None and known.clamp is Clamp.AFTER:
        told = f"{name} of {version} is clamped after exp only: a token 88.7 nats below the reference leaves the "
        told += f"loss at {CEILING:.0f} and makes the gradient NaN; beyond 2.61 nats it does not pull at all"
        upgrade = f"upgrade {known.trainer.value} to {shown(known.before)}" if known.before else "use k2"
        return Verdict.WARN, told, f"{upgrade}, and mask tokens that the policy did not choose"
    if known is not None and known.clamp is Clamp.NONE:
        told = (
            f"{name} of {version} has no clamp: 12 nats below the reference a token's derivative is 163,000, at "
        )
        return (
            Verdict.INFO,
            told + "88.7 nats it is infinite",
            "mask tokens that the policy did not choose; watch kl.* rules",
        )
    if known is not None:
        told = f"{name} of {version} is clamped before and after exp: no NaN, and no pull beyond 2.61 nats"
        return Verdict.OK, told, ""
    if name in ("k1", "kl"):
        told = f"{name} in the loss: its expected gradient is 0, so it holds nothing, whatever the coefficient"
        return Verdict.WARN, told, "k2 (its gradient is that of KL(policy ‖ reference)), or k1 in the reward"
    return Verdict.OK, f"{name} of {version}: no exponential, no overflow", ""


def check_reference(config: TrainerConfig) -> Iterator[Finding]:
    """C4: is KL measured at all?"""
    found = config.find(Setting.KL_COEF)
    if in_loss(config) or in_reward(config) is not None:
        told = str(in_reward(config) or found)
        yield Finding(check="C4", verdict=Verdict.OK, subject="KL is measured", evidence=told)
        return
    switch = config.given(Setting.KL_IN_LOSS)
    if switch is not None and switch.on:
        told = f"{switch}, {found}: the reference is loaded and KL measured, with no pull"
        yield Finding(check="C4", verdict=Verdict.OK, subject="KL is measured", evidence=told)
        return
    coefficient = config.find(Setting.KL_IN_LOSS) or found
    yield Finding(
        check="C4",
        verdict=Verdict.INFO,
        subject="KL rules will be dormant",
        evidence=f"{coefficient if coefficient is not None else 'no KL setting'}: no reference model is loaded, "
        "KL is missing (not 0), and it can't be switched on in the running job",
        fix=_small(config),
        where=config.at(coefficient),
    )


def _small(config: TrainerConfig) -> str:
    keys = {
        Trainer.TRL: "beta = 1e-4",
        Trainer.VERL: "actor_rollout_ref.actor.use_kl_loss=True with kl_loss_coef=1e-4",
        Trainer.OPENRLHF: "--algo.kl.init_coef 1e-4",
        Trainer.SLIME: "--use-kl-loss --kl-loss-coef 1e-4",
    }
    return f"fine without; to watch drift, {keys.get(config.trainer, 'a small coefficient')}"


def check_coefficient(config: TrainerConfig) -> Iterator[Finding]:
    """C5: the coefficient lies where runs are known to be well, and no one token outweighs the batch.

    With weights 1/N, N tokens give a policy gradient of about 1/sqrt(N) (advantages of unit size), and one token
    at distance d adds beta·k'(d)/N. So the share of one token is beta·k'(d)/sqrt(N): small batches need a smaller
    coefficient. The usual share of all tokens does not depend on N.
    """
    subject, found = "KL coefficient", in_reward(config)
    loss = in_loss(config)
    if not loss and found is None:
        yield Finding(check="C5", verdict=Verdict.SKIPPED, subject=subject, evidence="no KL term")
        return
    found = config.find(Setting.KL_COEF) if loss or found is None else found
    beta = found.number if found is not None and found.number is not None else 0.0
    tokens = tokens_of_update(config)
    share = beta * _derivative(config) / math.sqrt(tokens) if loss and tokens else 0.0
    one = ""
    if share and tokens:
        one = f"; of at most {tokens:,} tokens in an update, one at {FAR_NATS:.0f} nats pulls {share:.2g} times "
        one += "as hard as all rewards together"
    if share > 1 and tokens:
        bound = math.sqrt(tokens) / _derivative(config)
        verdict, told = Verdict.WARN, "One far token outweighs the policy gradient"
        fix = f"at most {bound:.1g} for this batch, or a larger batch, or k2"
    elif beta >= PINNING:
        verdict, told, fix = (
            Verdict.WARN,
            "KL coefficient pins the policy",
            "0.001 to 0.1; at 3 a policy slid back to its reference",
        )
    elif not KNOWN_LOW <= beta <= KNOWN_HIGH:
        verdict, told, fix = (
            Verdict.INFO,
            "KL coefficient outside the known-good range",
            f"{KNOWN_LOW:g} to {KNOWN_HIGH:g}",
        )
    else:
        verdict, told, fix = Verdict.OK, subject, ""
    evidence = f"{found}{one}" + ("" if verdict is Verdict.OK else f"; {SHIPPED}")
    yield Finding(check="C5", verdict=verdict, subject=told, evidence=evidence, fix=fix, where=config.at(found))


def _derivative(config: TrainerConfig) -> float:
    """|k'| of a token `FAR_NATS` below the reference, as this trainer evaluates it."""
    known = clamp_of(config)
    if known is None:
        return FAR_NATS if estimator_of(config) not in ("k1", "kl", "abs") else 1.0
    return math.exp(FAR_NATS) - 1 if known.clamp is Clamp.NONE else SURVIVING_MAX


def tokens_of_update(config: TrainerConfig) -> int | None:
    """An upper bound: answers in one optimizer step times the completion limit; None if either is unknown."""
    limit, update = config.number(Setting.COMPLETION_LIMIT), config.number(Setting.UPDATE_BATCH)
    if config.trainer is Trainer.TRL:
        update = (config.number(Setting.DEVICE_BATCH) or 1) * (config.number(Setting.ACCUMULATION) or 1)
        update *= config.world_size or 1
    elif config.trainer is Trainer.VERL and update:
        update *= config.number(Setting.GROUP_SIZE) or 1
    return int(limit * update) if limit and update and limit > 0 and update > 0 else None
