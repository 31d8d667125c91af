"""C1 to C13: what a trainer's settings will do to a run, judged before its first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import TrainerConfig
from rlvitals.preflight.trainer_keys import Setting, Trainer
from rlvitals.preflight.training_findings import finding_at, ok, skipped
from rlvitals.preflight.training_groups import check_clip, check_groups
from rlvitals.preflight.training_kl import check_coefficient, check_estimator, check_reference
from rlvitals.preflight.training_sampling import check_sampling, check_stopping

Check = Callable[[TrainerConfig], Iterator[Finding]]
LR_FULL_WARN, LR_LORA_WARN, LR_LOW = 1e-5, 1e-3, 1e-8
"""Trainers ship 1e-6 for full updates; LoRA takes 1e-5 to 2e-4."""


def judge_training(config: TrainerConfig, cut_share: float | None = None) -> Iterator[Finding]:
    """``cut_share`` is the share of answers that the completion limit will cut, where the data told it."""
    yield from _check_read(config)
    if config.trainer is Trainer.UNKNOWN:
        return
    found = [finding for check in CHECKS for finding in check(config)]
    yield from sorted([*found, *_check_masking(config, cut_share)], key=lambda finding: int(finding.check[1:]))


def _check_read(config: TrainerConfig) -> Iterator[Finding]:
    count = len(config.values)
    if config.trainer is Trainer.UNKNOWN:
        yield Finding(
            check="C1",
            verdict=Verdict.WARN,
            subject="No trainer known by these settings: C2 to C13 were not judged",
            evidence=f"{count} keys, such as {', '.join(sorted(config.values)[:5]) or 'none at all'}",
            fix="say which: --trainer TRL, verl, OpenRLHF or slime",
            where=config.where,
        )
        return
    given = [config.given(setting) for setting in Setting if setting is not Setting.GRAD_CLIP]
    broken = [found for found in given if found is not None and found.broken]
    if broken:
        told = ", ".join(map(str, broken))
        yield finding_at(
            config, "C1", Verdict.FATAL, "Settings that are no numbers", told, "write a finite number"
        )
        return
    version = (
        f" {'.'.join(map(str, config.version))}" if config.version else ", version unknown: judged as the newest"
    )
    evidence = f"{config.trainer.value}{version}; {count} keys"
    if config.unresolved:
        evidence += f"; not known without the shell: {', '.join(config.unresolved[:6])}"
    verdict = Verdict.INFO if config.unresolved else Verdict.OK
    yield Finding(
        check="C1", verdict=verdict, subject="The settings are read", evidence=evidence, where=config.where
    )


def check_checkpoints(config: TrainerConfig) -> Iterator[Finding]:
    """C2: something to return to, before the run ends."""
    strategy, every = config.find(Setting.SAVE_STRATEGY), config.find(Setting.SAVE_STEPS)
    total = config.number(Setting.TOTAL_STEPS)
    never = strategy is not None and str(strategy.value).lower() in ("no", "none")
    steps = every.number if every is not None else None
    path = config.find(Setting.SAVE_PATH)
    if config.trainer is Trainer.SLIME:
        never = path is None or steps is None
    elif not never and (strategy is None or strategy.value == "steps"):
        never = steps is not None and steps <= 0
    late = not never and steps is not None and total is not None and 0 < total < steps
    late = late and (strategy is None or strategy.value == "steps")
    told = (
        ", ".join(str(found) for found in (strategy, every, path) if found is not None)
        or "neither a folder nor an interval"
    )
    if never or late:
        why = f"the run ends at step {total:.0f}, before the first checkpoint" if late else "nothing is written"
        yield finding_at(
            config,
            "C2",
            Verdict.WARN,
            "No checkpoint to return to",
            f"{told}: {why}; after the first NaN the weights are lost",
            f"set {_save_key(config)} to a number of steps that you can afford to lose, such as 50",
            Setting.SAVE_STRATEGY if config.given(Setting.SAVE_STRATEGY) else Setting.SAVE_STEPS,
        )
        return
    only_model = config.find(Setting.SAVE_ONLY_MODEL)
    if only_model is not None and only_model.on:
        fix = "save_only_model = false: optimizer and scheduler are needed to go on"
        evidence = f"{only_model}: optimizer, scheduler and random state are not kept"
        yield finding_at(config, "C2", Verdict.INFO, "Checkpoints can't be resumed from", evidence, fix)
        return
    yield ok("C2", "Checkpoints are written", told)


def _save_key(config: TrainerConfig) -> str:
    return {
        Trainer.TRL: "save_strategy = steps and save_steps",
        Trainer.VERL: "trainer.save_freq",
        Trainer.OPENRLHF: "--ckpt.save_steps (--save_steps before 0.10.2)",
        Trainer.SLIME: "--save to a folder and --save-interval",
    }[config.trainer]


def check_learning_rate(config: TrainerConfig) -> Iterator[Finding]:
    """C6: a step that moves the policy, and not out of the text it can write."""
    found, lora = config.find(Setting.LEARNING_RATE), config.find(Setting.LORA_RANK)
    rate = found.number if found is not None else None
    if found is None or rate is None:
        yield skipped("C6", "Learning rate", "no learning rate is set")
        return
    has_lora = lora is not None and (lora.on or (lora.number or 0) > 0)
    limit = LR_LORA_WARN if has_lora else LR_FULL_WARN
    if rate <= LR_LOW:
        fix = "1e-6 for all weights, 1e-5 to 1e-4 for LoRA"
        yield finding_at(
            config, "C6", Verdict.WARN, "The learning rate moves nothing", str(found), fix, Setting.LEARNING_RATE
        )
    elif rate > limit:
        kind = "LoRA" if has_lora else "all weights (no LoRA setting was seen)"
        yield finding_at(
            config,
            "C6",
            Verdict.WARN,
            "The learning rate is high for RL",
            f"{found} for {kind}; known-good 1e-6 for all weights, 1e-5 to 2e-4 for LoRA; 30 times too high "
            "collapsed entropy within 20 steps in simulation, with the importance ratio as the first sign",
            f"try {1e-5 if has_lora else 1e-6:g}",
            Setting.LEARNING_RATE,
        )
    else:
        yield ok("C6", "Learning rate", str(found))


def check_precision(config: TrainerConfig) -> Iterator[Finding]:
    """C12: gradients are clipped, and nothing overflows at 11 nats."""
    half, clip = config.find(Setting.FP16), config.find(Setting.GRAD_CLIP)
    fp16 = half is not None and (half.on or str(half.value).lower() in ("fp16", "float16", "half"))
    if fp16 and half is not None:
        yield finding_at(
            config,
            "C12",
            Verdict.WARN,
            "fp16: exp overflows at 11.1 nats",
            f"{half}: a k3 estimate or a ratio of one token 11.1 nats away is infinite; bf16 and fp32 go to 88.7",
            "bf16",
            Setting.FP16,
        )
    if clip is not None and (clip.number is None or not clip.number > 0):
        evidence = f"{clip}: one token's spike goes into the weights as it is"
        yield finding_at(
            config,
            "C12",
            Verdict.WARN,
            "Gradients are not clipped",
            evidence,
            f"{clip.key} = 1.0",
            Setting.GRAD_CLIP,
        )
    elif not fp16:
        yield ok("C12", "Precision and gradient clipping", str(clip) if clip is not None else "no fp16 setting")


def check_nan_filter(config: TrainerConfig) -> Iterator[Finding]:
    """C13: a NaN loss is logged as what it is."""
    found = config.find(Setting.NAN_FILTER)
    if found is None:
        yield skipped("C13", "NaN filter of the log", "this trainer has none")
    elif found.on:
        yield finding_at(
            config,
            "C13",
            Verdict.INFO,
            "The trainer's own log hides NaN",
            f"{found}: a NaN loss is logged as the running mean (RL Vitals reads below this filter)",
            f"{found.key} = false",
            Setting.NAN_FILTER,
        )
    else:
        yield ok("C13", "NaN filter of the log", str(found))


def _check_masking(config: TrainerConfig, cut_share: float | None) -> Iterator[Finding]:
    """C9: what is cut is not also taken out of the loss by the score."""
    found = config.find(Setting.MASK_TRUNCATED)
    if found is None:
        yield skipped("C9", "Masking of cut answers", "this trainer has no such setting")
    elif not found.on:
        yield ok("C9", "Masking of cut answers", str(found))
    else:
        many = cut_share is not None and cut_share > 0.2
        share = (
            f"; the limit cuts {100 * cut_share:.0f} % of the answers in the data" if cut_share is not None else ""
        )
        yield finding_at(
            config,
            "C9",
            Verdict.WARN if many else Verdict.INFO,
            "Cut answers are taken out of the loss",
            f"{found}{share}: nothing brakes length any more, and with all cut no token is left to train on",
            "raise the completion limit first (L1); a soft length penalty instead of masking",
            Setting.MASK_TRUNCATED,
        )


CHECKS: tuple[Check, ...] = (
    check_checkpoints,
    check_estimator,
    check_reference,
    check_coefficient,
    check_learning_rate,
    check_sampling,
    check_groups,
    check_stopping,
    check_clip,
    check_precision,
    check_nan_filter,
)
