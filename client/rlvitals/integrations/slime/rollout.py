"""The rollout manager's side: one process that sees all completions, and where a pause holds the run.

A blocked manager means that the driver waits for a generation: the training ranks are idle and no collective of
theirs is pending, so no timeout of theirs runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.evaluation import as_evaluated
from rlvitals.contract.report import Phase
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.loop.facts import Facts
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.slime import arguments, batches, support
from rlvitals.integrations.slime.opening import open_vitals, tokenizer_of
from rlvitals.probes.lengths import stop_ids_of

OBEYS = (CommandKind.PAUSE, CommandKind.RESUME)


@dataclass(slots=True)
class Manager:
    vitals: Vitals
    table: HookTable


_MANAGERS: dict[int, Manager] = {}


def tell(rollout_id: Any, args: Any, samples: Any, extra: Any, seconds: Any) -> None:
    """Reports a rollout at the number of the first optimizer step that trains on it, and holds while paused."""
    manager = _manager(args)
    step = arguments.number_of(args, int(rollout_id))
    with Guard("slime: reading the samples") as watch:
        manager.vitals.rollout(**batches.of_samples(samples, args))
    if watch.failed:
        manager.table.failed(support.LOG, "slime's samples could not be read; see the rollout manager's log")
    else:
        manager.table.saw(support.LOG)
    values = _numbers(extra)
    if attempt(float, seconds) is not None:
        values["progress.phase_rollout_s"] = float(seconds)
    manager.vitals.report(step, values)
    manager.table.step_ends(manager.vitals.reporter, step)
    manager.vitals.obey(step)
    manager.vitals.reporter.current_phase = Phase.UPDATE


def tell_evaluation(rollout_id: Any, args: Any, data: Any, extra: Any) -> None:
    """Mean reward and truncation of each evaluation set, and slime's own numbers, under ``eval/``."""
    manager = _manager(args)
    manager.table.saw(support.EVAL_LOG)
    values = _numbers(extra)
    for name, told in (data or {}).items():
        values |= _evaluated(f"eval/{name}", told)
    manager.vitals.reporter.report(arguments.number_of(args, int(rollout_id)), as_evaluated(values))


def _evaluated(name: str, told: Mapping[str, Any]) -> dict[str, float]:
    rewards, cut = told.get("rewards") or (), told.get("truncated") or ()
    found = {name: sum(map(float, rewards)) / len(rewards)} if rewards else {}
    return found | ({f"{name}-truncated_ratio": sum(map(float, cut)) / len(cut)} if cut else {})


def _numbers(told: Any) -> dict[str, float]:
    """Of a mapping those values that are plain numbers."""
    pairs = told.items() if isinstance(told, Mapping) else ()
    return {str(name): float(value) for name, value in pairs if isinstance(value, (int, float))}


def _manager(args: Any) -> Manager:
    found = _MANAGERS.get(0)
    if found is None:
        found = _MANAGERS.setdefault(0, _open(args))
    return found


def _open(args: Any) -> Manager:
    steered = arguments.is_ours(args, arguments.STEP_FLAG)
    trained = steered or arguments.is_ours(args, arguments.INIT_FLAG)
    others = dict.fromkeys(arguments.TRAIN_TELLS, arguments.NO_TRAIN_HOOK)
    tokenizer = tokenizer_of(args)
    facts = Facts(
        tokenizer=tokenizer,
        embedding_rows=attempt(int, getattr(args, "vocab_size", None)),
        stop_ids=stop_ids_of(tokenizer, list(getattr(args, "rollout_stop_token_ids", None) or ())),
        length_cap=attempt(int, getattr(args, "rollout_max_response_len", None)),
        group_size=attempt(int, getattr(args, "n_samples_per_prompt", None)),
        absent={} if trained else others,
        tells=arguments.ROLLOUT_TELLS if trained else arguments.ROLLOUT_TELLS | arguments.TRAIN_TELLS,
    )
    vitals = open_vitals(
        args, "rollout", facts, Ranks(), leads=True, obeys=OBEYS if steered else tuple(CommandKind)
    )
    if not steered:
        for kind in set(CommandKind) - set(OBEYS):
            vitals.cannot(kind, arguments.NO_TRAIN_HOOK.replace("not measured", "not possible"))
    return Manager(vitals=vitals, table=support.rollout_hooks(args))


def forget() -> None:
    """Closes what this process has opened; the next rollout opens it anew."""
    for manager in _MANAGERS.values():
        manager.vitals.close()
    _MANAGERS.clear()
