"""``rlvitals.run(…)``: who trains, on which rank, and what the loop is able to tell."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlvitals import notices
from rlvitals.config import clean
from rlvitals.contract.command import CommandKind
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.loop.commands import Commands
from rlvitals.integrations.loop.facts import Coefficient, Facts, Number
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.reporter import Reporter
from rlvitals.start import init

if TYPE_CHECKING:
    from rlvitals.integrations.loop.session import Session
    from rlvitals.integrations.ranks import Ranks

TIMEOUT_S = 1800.0
"""How long ranks wait for each other in a collective of ours."""
_OF_INIT = frozenset({"run", "framework", "tags", "url", "token", "spool", "mode", "limits"})


def run(
    *,
    project: str | None = None,
    name: str = "",
    config: object = None,
    model: Any = None,
    optimizer: Any = None,
    scheduler: Any = None,
    tokenizer: Any = None,
    embedding_rows: int | None = None,
    token_ranges: Mapping[str, Any] | None = None,
    stop_ids: Collection[int] = (),
    length_cap: int | None = None,
    group_size: int | None = None,
    kl_coef: Number = None,
    kl_estimator: str = "k3",
    kl_clamp: str | None = None,
    loss_type: str | None = None,
    accumulation: int = 1,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    reward_names: Sequence[str] = (),
    reward_weights: Sequence[float] | None = None,
    reward_range: tuple[float, float] | None = None,
    texts: bool = True,
    absent: Mapping[str, str] | None = None,
    **arguments: Any,
) -> Vitals:
    """A run of a loop of your own; ``with rlvitals.run(…) as vitals`` closes it with how it ended. Never raises.

    Every argument may be left out; what then cannot be measured is missing with the reason.

    ``model`` is the module that is trained (or only its name), ``optimizer`` and ``scheduler`` what a command may
    scale; the weights are looked at around the optimizer's own step. ``tokenizer`` is anything that
    `TokenTable.read` takes, ``embedding_rows`` how many ids the model can emit (default: the model's),
    ``token_ranges={"byte_ids": [(3, 258)]}`` overrides what the vocabulary says, for people who know better.
    ``stop_ids`` are *all* ids that end a completion (default: the tokenizer's EOS and those of the model's
    generation config), ``length_cap`` the limit in tokens, ``group_size`` completions a prompt where they are
    neighbours.

    ``kl_coef`` is the coefficient in force, a number or a function that gives it (then a change is seen),
    ``kl_estimator`` and ``kl_clamp`` its form (see `kl_form`). ``loss_type`` is the aggregation by TRL's names
    (grpo, bnpo, dr_grpo, dapo, …, see `gradients.weights_for`), ``accumulation`` micro-batches a step, ``epsilon``
    and ``epsilon_high`` the clip range. ``reward_names`` and ``reward_weights`` belong to rewards (B, F);
    ``reward_range`` are the least and the greatest reward of an answer. ``texts=False`` sends counts only, never a
    completion or a prompt. ``absent={"critic.loss": "no value head"}`` says why it can never be told.

    The other arguments are those of `rlvitals.init` (``run`` is its id). Call it on every rank, after the process
    group has been made: rank 0 reports for all.
    """
    known = {key: value for key, value in arguments.items() if key in _OF_INIT}
    for unknown in sorted(arguments.keys() - known.keys()):
        notices.once(f"run:{unknown}", f"rlvitals.run has no argument {unknown!r}; it is ignored")
    facts = Facts(
        model=None if isinstance(model, str) else model,
        optimizer=optimizer,
        scheduler=scheduler,
        tokenizer=tokenizer,
        embedding_rows=embedding_rows,
        token_ranges=token_ranges,
        stop_ids=_stop_ids(stop_ids, tokenizer, model),
        length_cap=length_cap,
        group_size=group_size,
        kl_coef=kl_coef,
        kl_estimator=kl_estimator,
        kl_clamp=kl_clamp,
        loss_type=loss_type,
        accumulation=accumulation,
        epsilon=epsilon,
        epsilon_high=epsilon_high,
        reward_names=reward_names,
        reward_weights=reward_weights,
        reward_range=reward_range,
        texts=texts,
        absent=absent or {},
    )
    ranks = _meet()
    reporter = _reporter(facts, config, {"project": project, "name": name, **known}, ranks)
    coefficient = Coefficient(kl_coef)
    commands = Commands(reporter, ranks=ranks, coefficient=coefficient, optimizer=optimizer, scheduler=scheduler)
    vitals = Vitals(reporter, commands, _session(facts, reporter, ranks, coefficient))
    reporter.describe(model=(attempt(_model_name, model) or "")[:256])
    return vitals


def _reporter(facts: Facts, config: object, told: dict[str, Any], ranks: Ranks | None) -> Reporter:
    if _rank() > 0:
        return Reporter.disabled()
    with Guard("rlvitals.run"):
        named = facts.config() | {"world_size": ranks.size if ranks is not None else 1}
        reporter = init(**told, config={**named, **clean(config)})
        coefficient = Coefficient(facts.kl_coef).now()
        if coefficient:
            reporter.control.user_value(CommandKind.SET_KL_COEF, coefficient)
        return reporter
    return Reporter.disabled()


def _session(facts: Facts, reporter: Reporter, ranks: Ranks | None, coefficient: Coefficient) -> Session | None:
    """None where torch and numpy are missing: then the loop's own numbers are all that is reported."""
    with Guard("preparing the probes"):
        try:
            from rlvitals.integrations.loop.session import Session
        except ImportError as error:
            notices.once("run:probes", f"only the loop's own numbers are reported: {error}")
            return None
        return Session(facts, reporter, ranks, coefficient) if ranks is not None else None
    return None


def _meet() -> Ranks | None:
    """The group of all ranks; None where there is no torch. Collective."""
    with Guard("meeting the ranks"):
        try:
            from rlvitals.integrations.ranks import Ranks
        except ImportError:
            return None
        with Guard("making a group of the ranks"):
            return Ranks.meet(TIMEOUT_S)
        return Ranks()
    return None


def _rank() -> int:
    """This process's rank, also where torch.distributed has not been set up yet."""
    try:
        import torch.distributed as dist
    except ImportError:
        return 0
    if dist.is_available() and dist.is_initialized():
        return int(dist.get_rank())
    several = os.environ.get("WORLD_SIZE", "1") not in ("", "1")
    if several:
        notices.once(
            "run:ranks", "rlvitals.run before the process group was made: only rank 0 reports, its own part only"
        )
    rank = os.environ.get("RANK", "0")
    return int(rank) if several and rank.isdecimal() else 0


def _stop_ids(stop_ids: Collection[int], tokenizer: Any, model: Any) -> frozenset[int]:
    with Guard("reading the stop ids"):
        try:
            from rlvitals.probes.lengths import stop_ids_of
        except ImportError:
            return frozenset(stop_ids)
        if stop_ids:
            return stop_ids_of(list(stop_ids))
        return stop_ids_of(tokenizer, getattr(getattr(model, "module", model), "generation_config", None))
    return frozenset()


def _model_name(model: Any) -> str:
    if isinstance(model, str):
        return model
    core = getattr(model, "module", model)
    named = str(getattr(getattr(core, "config", None), "_name_or_path", "") or "")
    return named or (type(core).__name__ if core is not None else "")
