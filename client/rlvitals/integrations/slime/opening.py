"""A process's part in the run: its reporter, one writer of the shared attempt, and the loop's parts around it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.loop.commands import Commands
from rlvitals.integrations.loop.facts import Coefficient, Facts
from rlvitals.integrations.loop.session import Session
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.slime import arguments
from rlvitals.integrations.slime.identity import agree
from rlvitals.part import Part
from rlvitals.reporter import Reporter
from rlvitals.start import init


def open_vitals(
    args: Any,
    role: str,
    facts: Facts,
    ranks: Ranks,
    *,
    leads: bool,
    obeys: Collection[CommandKind],
) -> Vitals:
    """The vitals of one process; only the first rank's reporter is enabled. Collective over ranks."""
    reporter = Reporter.disabled()
    with Guard("slime: opening the run"):
        if ranks.rank == 0:
            who = agree(args)
            told = settings_of(args, facts) if leads else None
            reporter = init(
                run=who.run,
                framework="slime" if leads else "",
                model=str(getattr(args, "hf_checkpoint", "") or "") if leads else "",
                config=told,
                part=Part.of(role, who.attempt, leads=leads, obeys=obeys),
            )
    coefficient = Coefficient(facts.kl_coef)
    value = coefficient.now()
    if value:
        reporter.control.user_value(CommandKind.SET_KL_COEF, value)
    commands = Commands(reporter, ranks=ranks, coefficient=coefficient)
    return Vitals(reporter, commands, Session(facts, reporter, ranks, coefficient))


def settings_of(args: Any, facts: Facts) -> dict[str, Any]:
    """All of slime's arguments, and over them those names that rules use: its ``kl_coef`` is that of the reward
    alone, and 0 where the loss has the coefficient.
    """
    training = Facts(**arguments.training_facts(args)).config()
    return {**vars(args), "reward_kl_coef": getattr(args, "kl_coef", None), **facts.config(), **training}


def tokenizer_of(args: Any) -> Any:
    """The model's own; None where it cannot be loaded."""
    folder = getattr(args, "hf_checkpoint", None)
    return attempt(_load, str(folder)) if folder else None


def _load(folder: str) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
