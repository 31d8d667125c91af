"""Where RL Vitals takes hold of slime, and which versions have been tried. Imports neither slime nor torch."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rlvitals.guard import attempt
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.slime import arguments

VERSIONS = ("main of 2026-08-21",)
"""slime is installed from its repository; its own plug-in contracts run against our functions at these."""
READ = ("0.1.0", "0.2.0", "0.2.2", "0.2.4", "0.3.0", "0.3.1")
"""Versions whose signatures were read, not run."""
LOG, EVAL_LOG, BEFORE, DATA = "rollout log", "evaluation log", "before the step", "rollout data"
LOSS, LOGPROBS, STEP = "policy loss", "log-probs", "optimizer step"
_GIVES = {
    LOG: "texts, lengths, truncation, rewards, groups; pause",
    EVAL_LOG: "evaluations at their own cadence",
    BEFORE: "set_kl_coef, checkpoint, stop; installs the hold of loss and step",
    DATA: "a warning before an update whose KL gradient is NaN; the ratios where the loss cannot be seen",
    LOSS: "ratios, KL, advantages, numerics of each micro-batch",
    LOGPROBS: "the log-probs and entropies of the loss",
    STEP: "the step's end on every rank, gradient norm, slime's own numbers",
}
_TARGETS = {
    LOG: "--custom-rollout-log-function-path",
    EVAL_LOG: "--custom-eval-rollout-log-function-path",
    BEFORE: "--custom-megatron-before-train-step-hook-path",
    DATA: "--rollout-data-postprocess-path",
    LOSS: "slime.backends.megatron_utils.loss.policy_loss_function",
    LOGPROBS: "slime.backends.megatron_utils.loss.get_log_probs_and_entropy",
    STEP: "slime.backends.megatron_utils.model.train_one_step",
}
_FLAGS = {
    LOG: arguments.ROLLOUT_FLAG,
    EVAL_LOG: "custom_eval_rollout_log_function_path",
    BEFORE: arguments.STEP_FLAG,
    DATA: arguments.POSTPROCESS_FLAG,
}
_SOURCES = {LOSS: "backends/megatron_utils/loss.py", LOGPROBS: "backends/megatron_utils/loss.py"}
_OPTIONAL = (EVAL_LOG, DATA)
NOT_INSTALLED = "slime is not installed here"
NOT_SET = "the flag is not set to our function"


def hooks() -> HookTable:
    """What the installed slime has of it, without training and without importing it."""
    table = HookTable("slime", installed())
    folder = _folder()
    arguments_file = attempt(_text, folder, "utils/arguments.py") or ""
    for name in (LOG, EVAL_LOG, BEFORE, DATA):
        known = _TARGETS[name] in arguments_file
        enter(table, name, patched=known, why="" if known else _why(folder, "this slime has no such flag"))
    for name in (LOSS, LOGPROBS, STEP):
        source = attempt(_text, folder, _SOURCES.get(name, "backends/megatron_utils/model.py")) or ""
        known = f"def {_TARGETS[name].rpartition('.')[2]}(" in source
        enter(table, name, patched=known, why="" if known else _why(folder, "this slime has no such function"))
    return table


def installed() -> str:
    """slime's version, "" where there is none."""
    try:
        return version("slime")
    except PackageNotFoundError:
        return ""


def rollout_hooks(args: Any) -> HookTable:
    """The rollout manager's table: which flags of the job are ours."""
    return _by_flags(args, (LOG, EVAL_LOG))


def train_hooks(args: Any) -> HookTable:
    """A training rank's table, before it takes hold of the loss."""
    return _by_flags(args, (BEFORE, DATA))


def enter(table: HookTable, name: str, *, patched: bool, why: str = "") -> None:
    """Enters one of the places above."""
    table.add(name, _TARGETS[name], _GIVES[name], patched=patched, why=why, optional=name in _OPTIONAL)


def _by_flags(args: Any, names: tuple[str, ...]) -> HookTable:
    table = HookTable("slime", installed())
    for name in names:
        ours = arguments.is_ours(args, _FLAGS[name])
        enter(table, name, patched=ours, why="" if ours else NOT_SET)
    return table


def _why(folder: Path | None, otherwise: str) -> str:
    return NOT_INSTALLED if folder is None else otherwise


def _folder() -> Path | None:
    """THUDM's slime, not another package of that name."""
    found = attempt(importlib.util.find_spec, "slime")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    folder = Path(places[0]) if places else None
    return folder if folder is not None and (folder / "backends").is_dir() else None


def _text(folder: Path | None, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8") if folder is not None else ""
