"""The training ranks' side: losses of all ranks, and commands carried out by all of them alike.

Every function here is called by slime on all ranks of a role, in the same order. What is collective in them takes
place whatever fails before it.
"""

from __future__ import annotations

import time
from typing import Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.report import EventKind
from rlvitals.guard import Guard, attempt
from rlvitals.integrations.hooks import HookTable
from rlvitals.integrations.loop.facts import Facts
from rlvitals.integrations.loop.vitals import Vitals
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.slime import ahead, arguments, batches, saving, support
from rlvitals.integrations.slime.mesh import Place, all_well, meet
from rlvitals.integrations.slime.opening import open_vitals, tokenizer_of
from rlvitals.integrations.slime.taps import Taps, role_of

OBEYS = (CommandKind.SET_KL_COEF, CommandKind.CHECKPOINT, CommandKind.STOP, CommandKind.SCALE_LR)
NO_PAUSE = "a training rank must not wait; it needs --custom-rollout-log-function-path"
NO_SCALE = "Megatron's scheduler works the learning rate out anew at each step"
NO_KL = "slime loaded no reference model: that takes --use-kl-loss, or --kl-coef with PPO or REINFORCE++"
NO_SHOW = "the data of a rollout is shown to --rollout-data-postprocess-path from slime 0.2.4 on"

NO_DATA = "the rollout's data has no tokens in it"


class Training:
    """One process's, for one role; only the rank that logs reports."""

    def __init__(self, args: Any, role: str, taps: Taps, place: Place, ranks: Ranks) -> None:
        self.args, self.role, self.taps, self.place, self.ranks = args, role, taps, place, ranks
        self.table: HookTable = taps.table
        self.open_step: int | None = None
        self.rate: float | None = None
        self.saver = saving.Saver(args)
        self.vitals = self._open()

    @property
    def acts(self) -> bool:
        return self.role == "actor"

    @property
    def sees_loss(self) -> bool:
        return self.taps.sees_loss and getattr(self.args, "loss_type", "policy_loss") == "policy_loss"

    def _open(self) -> Vitals:
        args, first = self.args, self.ranks.rank == 0
        tells = arguments.TRAIN_TELLS - arguments.CRITIC_TELLS if getattr(args, "use_critic", False) else None
        facts = Facts(
            **arguments.training_facts(args),
            tokenizer=tokenizer_of(args) if first and self.acts else None,
            embedding_rows=attempt(int, getattr(args, "vocab_size", None)),
            texts=False,
            tells=(tells or arguments.TRAIN_TELLS) if self.acts else arguments.CRITIC_TELLS,
        )
        leads = self.acts and not arguments.is_ours(args, arguments.ROLLOUT_FLAG)
        steers = self.acts and arguments.is_ours(args, arguments.STEP_FLAG)
        kinds = tuple(CommandKind) if leads else OBEYS if steers else ()
        vitals = open_vitals(
            args, "train" if self.acts else self.role, facts, self.ranks, leads=leads, obeys=kinds
        )
        if self.acts:
            self._steer(vitals)
        return vitals

    def _steer(self, vitals: Vitals) -> None:
        name = arguments.coefficient_name(self.args)
        if name:
            vitals.on(
                CommandKind.SET_KL_COEF,
                lambda value: setattr(self.args, name, float(value)),
                get=lambda: float(getattr(self.args, name)),
            )
        else:
            vitals.cannot(CommandKind.SET_KL_COEF, NO_KL)
        vitals.cannot(CommandKind.SCALE_LR, NO_SCALE)
        vitals.cannot(CommandKind.PAUSE, NO_PAUSE)
        vitals.cannot(CommandKind.RESUME, NO_PAUSE)
        if self.saver.reason:
            vitals.cannot(CommandKind.CHECKPOINT, self.saver.reason)
        else:
            vitals.on(CommandKind.CHECKPOINT, self.saver.save)

    # -- a step ------------------------------------------------------------------------------------

    def begin(self, rollout_id: int, step_id: int, optimizer: Any) -> None:
        self.open_step = arguments.number_of(self.args, rollout_id, step_id)
        groups = getattr(optimizer, "param_groups", None)
        self.rate = attempt(float, groups[0].get("lr")) if groups else None

    def end(self, losses: Any = None, norm: Any = None) -> None:
        """Collective. ``losses`` are slime's own numbers of the step, on the last pipeline stage only."""
        step, self.open_step = self.open_step, None
        self.taps.clear()
        values: dict[str, Any] = {}
        if step is None:
            return
        with Guard("slime: the step's numbers"):
            values = self._values(losses or {})
            if norm is not None and self.acts:
                self.vitals.gradient(norm)
            elif norm is not None:
                values["critic.gradient_norm"] = norm
        self.vitals.report(step, values)
        self.vitals.settle()  # nobody tells a rank that it is over
        with Guard("slime: telling the hooks"):
            if self.ranks.rank == 0:
                self.table.step_ends(self.vitals.reporter, step)

    def _values(self, losses: Any) -> dict[str, Any]:
        role = "" if self.acts else f"{self.role}-"
        named = {f"train/{role if name != 'value_loss' else ''}{name}": _scalar(v) for name, v in losses.items()}
        return named if self.rate is None or not self.acts else {**named, "policy.learning_rate": self.rate}

    def measure(self, batch: Any, logp: Any, entropy: Any, loss: Any) -> None:
        """One micro-batch's loss, on the ranks whose tensors are their own."""
        if not self.place.counts:
            return
        began = time.perf_counter()
        told = batches.of_loss(self.args, batch, logp, entropy, self.place.part)
        self.vitals.reporter.spent(time.perf_counter() - began)
        size = getattr(self.args, "global_batch_size", None)
        if getattr(self.args, "calculate_per_token_loss", False) or not size:
            loss = None
        # the loop takes the mean over ranks, slime's own is a sum over them
        share = None if loss is None else loss.detach() * self.ranks.size / size
        self.vitals.loss(share, **told)


_TRAININGS: dict[str, Training | None] = {}
_TAPS: list[Taps] = []


def step_begins(args: Any, rollout_id: int, step_id: int, model: Any, optimizer: Any, scheduler: Any) -> bool:
    """Collective. Ends a step that is still open, carries out commands where a rollout begins; True to stop."""
    training = training_of(args, role_of(model))
    if training is None:
        return False
    training.args = args
    training.saver.see(rollout_id, model, optimizer, scheduler)
    if training.open_step != arguments.number_of(args, rollout_id, step_id):
        training.end()
        training.begin(rollout_id, step_id, optimizer)
    training.table.saw(support.BEFORE)
    if step_id == 0 and training.acts:
        training.vitals.obey(arguments.number_of(args, rollout_id))
    if training.vitals.should_stop:
        training.vitals.close()
        return True
    return False


def data_ready(args: Any, rollout_id: Any, data: Any) -> None:
    """Collective. Looks at the KL's gradient before the update, and measures where the loss cannot be seen."""
    training = training_of(args, "actor")
    if training is None:
        return
    training.end()
    if not data or "loss_masks" not in data:
        training.table.failed(support.DATA, NO_SHOW if data is None else NO_DATA)
        return
    training.table.saw(support.DATA)
    with Guard("slime: measuring before the update"):
        if not training.sees_loss and training.place.counts:
            training.vitals.loss(**batches.of_rollout_data(args, data, training.place.part))
    began = time.perf_counter()
    found = ahead.poisoned(args, data, training.place, training.ranks)
    training.vitals.reporter.spent(time.perf_counter() - began)
    if found is not None:
        step = arguments.number_of(args, int(rollout_id))
        training.vitals.reporter.event(EventKind.NOTE, step, nan_gradient_ahead=found.told())
        training.vitals.reporter.report(step, found.values())


def take_hold(args: Any) -> None:
    """Where slime starts a rank: takes hold of loss and step; the run is opened when the role is known."""
    _taps(args)


def training_of(args: Any, role: str) -> Training | None:
    """This process's, opened at first use, which is collective; None where not all ranks could open theirs."""
    if role not in _TRAININGS:
        place, opened = Place(), None
        ranks = meet(place)
        with Guard("slime: opening a training rank"):
            opened = Training(args, role, _taps(args), place, ranks)
        _TRAININGS[role] = opened if all_well(ranks, opened is not None) else None
        _taps(args).follow(_TRAININGS[role])
    return _TRAININGS[role]


def forget() -> None:
    """Closes what this process has opened and gives slime its own functions back."""
    for training in filter(None, _TRAININGS.values()):
        training.vitals.close()
    for taps in _TAPS:
        taps.release()
    _TRAININGS.clear()
    _TAPS.clear()


def _taps(args: Any) -> Taps:
    if not _TAPS:
        _TAPS.append(Taps(support.train_hooks(args), training_of))
    return _TAPS[0]


def _scalar(value: Any) -> Any:
    return value.float().mean().item() if hasattr(value, "mean") else value
