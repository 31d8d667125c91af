"""C8 and C11: groups of answers, batches that hold them whole, and the range in which their ratios count."""

from __future__ import annotations

from collections.abc import Iterator

from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.trainer_config import TrainerConfig
from rlvitals.preflight.trainer_keys import Setting, Trainer
from rlvitals.preflight.training_findings import finding_at, ok, skipped

GROUP_FEW = 4
CLIP_WIDE, CLIP_SEQUENCE = 0.5, 0.01
WORLD_MAX = 64


def check_groups(config: TrainerConfig) -> Iterator[Finding]:
    """C8: groups of two or more, and batches that hold whole groups."""
    found = config.find(Setting.GROUP_SIZE)
    size = int(found.number) if found is not None and found.number is not None else None
    if found is None or size is None or not _grouped(config):
        yield skipped("C8", "Groups and batches", "no group baseline, or no group size is set")
        return
    if size < 2:
        yield finding_at(
            config,
            "C8",
            Verdict.FATAL,
            "Groups of one: no answer is better than another",
            f"{found}: the advantage of a lone answer is 0, or its raw reward without a baseline",
            f"set {found.key} to 8",
            Setting.GROUP_SIZE,
        )
        return
    yield from _batches(config, size)
    if size < GROUP_FEW:
        evidence = f"{found}: with {size} answers most groups are all right or all wrong and teach nothing"
        yield finding_at(
            config, "C8", Verdict.INFO, "Small groups", evidence, f"set {found.key} to 8", Setting.GROUP_SIZE
        )


def _grouped(config: TrainerConfig) -> bool:
    if config.trainer is Trainer.TRL:
        return config.algorithm not in ("ppo", "onlinedpo")
    found = config.find(Setting.ESTIMATOR)
    name = str(found.value).lower() if found is not None else ""
    return any(word in name for word in ("grpo", "group", "rloo", "gspo", "cispo", "baseline", "opo"))


def _batches(config: TrainerConfig, size: int) -> Iterator[Finding]:
    fault, evidence, fix = (
        _trl_batch(config, size) if config.trainer is Trainer.TRL else _other_batch(config, size)
    )
    if fault is not None:
        yield finding_at(
            config, "C8", fault, "Batches that do not hold whole groups", evidence, fix, Setting.GROUP_SIZE
        )
    else:
        yield ok("C8", "Groups and batches", evidence)


def _trl_batch(config: TrainerConfig, size: int) -> tuple[Verdict | None, str, str]:
    device = config.number(Setting.DEVICE_BATCH) or 1
    steps = config.number(Setting.STEPS_PER_GENERATION) or config.number(Setting.ACCUMULATION) or 1
    whole = config.number(Setting.GENERATION_BATCH)
    world = config.world_size or 1
    batch = int(whole) if whole else int(device * steps) * world
    parts = map(config.find, (Setting.DEVICE_BATCH, Setting.STEPS_PER_GENERATION, Setting.ACCUMULATION))
    given = [str(found) for found in (*parts, config.find(Setting.GENERATION_BATCH)) if found and found.given]
    told = f"{batch} answers a generation step on {world} process{'es' if world > 1 else ''}, groups of {size}"
    told += f" ({', '.join(given)})" if given else ""
    if batch % size == 0:
        return None, told, ""
    fits = next((n for n in range(1, WORLD_MAX + 1) if int(device * steps) * n % size == 0), None)
    if config.world_size is None and not whole and fits:
        return Verdict.WARN, f"{told}; whole groups from {fits} processes on", "say how many: --world-size"
    return Verdict.FATAL, told, f"make per_device_train_batch_size × accumulation a multiple of {size}"


def _other_batch(config: TrainerConfig, size: int) -> tuple[Verdict | None, str, str]:
    prompts, update = config.find(Setting.PROMPT_BATCH), config.find(Setting.UPDATE_BATCH)
    if prompts is None or update is None or not prompts.number or not update.number:
        return None, f"groups of {size}", ""
    told = f"{prompts}, {update}, groups of {size}"
    # verl counts prompts in an update, the others answers
    answers = prompts.number if config.trainer is Trainer.VERL else prompts.number * size
    if update.number > answers or answers % update.number:
        return Verdict.FATAL, told, f"make {prompts.key} a multiple of {update.key}"
    return None, told, ""


def check_clip(config: TrainerConfig) -> Iterator[Finding]:
    """C11: a clip range of the ratio's own scale (token or sequence)."""
    low, high = config.find(Setting.CLIP_LOW), config.find(Setting.CLIP_HIGH)
    if low is None or low.number is None:
        yield skipped("C11", "Clip range", "no clip range is set")
        return
    level, kind = config.find(Setting.RATIO_LEVEL), config.find(Setting.ESTIMATOR)
    by_sequence = any(f is not None and str(f.value).lower() in ("sequence", "gspo") for f in (level, kind))
    shown = (low, high, level if level is not None and level.given else None)
    told = ", ".join(str(found) for found in shown if found is not None)
    above = high.number if high is not None and high.number is not None else low.number
    fault = ""
    if low.number <= 0 or above < low.number:
        fault = "the range is empty or upside down" if low.number <= 0 else "the upper side is below the lower"
    elif by_sequence and low.number > CLIP_SEQUENCE:
        fault = "ratios are by sequence (GSPO), where 3e-4 is usual: this never clips"
    elif not by_sequence and above < CLIP_SEQUENCE:
        fault = "ratios are by token, where 0.2 is usual: nearly every token is clipped"
    elif above > CLIP_WIDE:
        fault = "a step may more than halve or double a token's probability: little is clipped"
    if fault:
        fix = f"{low.key} = {3e-4 if by_sequence else 0.2:g}"
        yield finding_at(config, "C11", Verdict.WARN, "Clip range", f"{told}: {fault}", fix, Setting.CLIP_LOW)
    else:
        yield ok("C11", "Clip range", told)
