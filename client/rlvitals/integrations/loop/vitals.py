"""What a loop holds: a few calls a step, none of which ever raises, waits or changes anything of the training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rlvitals.contract.command import CommandKind
from rlvitals.contract.evaluation import as_evaluated
from rlvitals.contract.report import EventKind, Phase
from rlvitals.guard import Guard
from rlvitals.integrations.loop.commands import Commands
from rlvitals.integrations.loop.facts import ABSENT
from rlvitals.reporter import Reporter

if TYPE_CHECKING:
    from rlvitals.integrations.loop.session import Session
    from rlvitals.probes.tally import Tally

NO_PROBES = "not measured: torch or numpy is not installed"


class Vitals:
    """One run of a loop, made by `rlvitals.run`; on every rank, with the same calls in the same order.

    In each step: `rollout`, then `loss` for each micro-batch, `gradient`, and `step`, which ends it.
    """

    def __init__(self, reporter: Reporter, commands: Commands, session: Session | None) -> None:
        self.reporter = reporter
        self._commands, self._session = commands, session

    @property
    def should_stop(self) -> bool:
        """True after somebody asked the run to stop, on all ranks at the same step. Leave the loop then."""
        return self._commands.should_stop

    def rollout(
        self,
        ids: Any,
        chosen: Any = None,
        *,
        rewards: Any = None,
        advantages: Any = None,
        group_ids: Any = None,
        finish_reasons: Sequence[Any] | None = None,
        prompts: Sequence[Any] | None = None,
        texts: Sequence[str] | None = None,
    ) -> None:
        """Tells of completions, before any loss mask and before a filter drops some.

        ``ids`` (B, T) padded on the right, or B lists of ids without padding. ``chosen`` are their lengths (B,),
        or a mask (B, T) of the tokens that the policy chose where tools wrote some; without it a completion ends
        at its first stop id. ``rewards`` (B,), (B, F) by function, or a dict of them by name; ``advantages`` (B,)
        or (B, T). ``group_ids`` (B,) say which answer the same prompt where ``group_size`` does not; a group
        belongs into one call. ``finish_reasons`` (B,) are the engine's own words. ``prompts`` (strings or
        messages) and ``texts`` are shown beside the few completions that are kept.
        """
        with self._at_work("vitals.rollout") as session:
            session.rollout(
                ids,
                chosen,
                rewards=rewards,
                advantages=advantages,
                group_ids=group_ids,
                finish_reasons=finish_reasons,
                prompts=prompts,
                texts=texts,
            )

    def loss(
        self,
        loss: Any = None,
        *,
        logp: Any = None,
        old: Any = None,
        ref: Any = None,
        rollout: Any = None,
        advantages: Any = None,
        mask: Any = None,
        ids: Any = None,
        entropy: Any = None,
        chosen: Any = None,
        logits: Any = None,
        weights: Any = None,
        num_items_in_batch: Any = None,
        rows: Any = None,
    ) -> None:
        """Tells of one micro-batch's loss, as it is differentiated; call it before or after ``backward``.

        ``logp``, ``old``, ``ref``, ``rollout`` (B, T) are log-probs of the chosen ids under the policy, the policy
        at rollout, the reference, and the sampling engine; ``mask`` (B, T) is the loss mask (default: all tokens),
        ``ids`` (B, T) the completions' ids, ``advantages`` (B,) or (B, T), ``entropy`` (B, T) in nats, ``chosen``
        (B, T) which tokens the policy wrote (for the count of forced ones), ``logits`` (B, T, V). ``weights`` is
        what the loss multiplies a token's term by (broadcasts to (B, T)) where no ``loss_type`` says it; the types
        of DAPO divide by ``num_items_in_batch``. ``rows`` (B,) are the completions' rows in the last rollout where
        they were shuffled. Tensors on any device, arrays too; graphs are not kept.
        """
        with self._at_work("vitals.loss") as session:
            session.loss(
                loss,
                {
                    "logp": logp,
                    "old": old,
                    "ref": ref,
                    "rollout": rollout,
                    "advantages": advantages,
                    "mask": mask,
                    "ids": ids,
                    "entropy": entropy,
                    "chosen": chosen,
                    "logits": logits,
                    "weights": weights,
                    "rows": rows,
                },
                num_items_in_batch,
            )

    def add(self, tally: Tally) -> None:
        """Adds what another process of the same run has measured of this step: workers behind one controller."""
        with self._at_work("vitals.add") as session:
            session.add(tally)

    def gradients(self) -> None:
        """Looks at each parameter's gradient; call it after unscaling, before clipping. Needs ``model``."""
        with self._at_work("vitals.gradients") as session:
            session.gradients()

    def gradient(self, norm: Any) -> None:
        """Tells the global gradient norm before clipping, as ``clip_grad_norm_`` returns it."""
        with self._at_work("vitals.gradient") as session:
            session.gradient(norm)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """``with vitals.phase("rollout"):`` counts seconds; also reward, reference, update, eval, checkpoint."""
        with self._at_work("vitals.phase") as session:
            session.phase_begins(name)
        try:
            yield
        finally:
            with self._at_work("vitals.phase") as session:
                session.phase_ends(name)

    def step(self, step: int, values: Mapping[str, Any] | None = None, **scalars: Any) -> None:
        """Ends one optimizer step: reports it, carries out commands, and holds as long as a pause does.

        ``values`` and ``scalars`` are the loop's own numbers. Names that trainers use (``lr``, ``entropy``,
        ``epoch``, ``grad_norm``) stand for the registry's where we did not measure it ourselves.
        """
        self.report(step, values, **scalars)
        self.obey(step)

    def report(self, step: int, values: Mapping[str, Any] | None = None, **scalars: Any) -> None:
        """Ends a step as `step` does, without carrying out commands: for trainers with another place for them."""
        with Guard("vitals.step"):
            told = {**(values or {}), **scalars}
            if self._session is not None:
                self._session.step_ends(int(step), told)
            else:
                self.reporter.report(int(step), told, missing=dict.fromkeys(ABSENT, NO_PROBES))

    def obey(self, step: int) -> None:
        """Carries out what has been asked for, and holds as long as a pause does. Between two steps only."""
        with Guard("commands"):
            self._commands.obey(int(step))

    def evaluation(self, step: int, values: Mapping[str, Any]) -> None:
        """Tells what an evaluation measured after ``step``, at its own cadence: it is no training step.

        Names that don't begin as those of evaluations do (``eval_``, ``eval/``, ``val/``) become ``eval/<name>``.
        """
        with Guard("vitals.evaluation"):
            self.reporter.report(int(step), as_evaluated(values))

    def settle(self) -> None:
        """Tells a step that still waits for its device, at once: for loops whose end nobody sees. Collective."""
        with Guard("vitals.settle"):
            if self._session is not None:
                self._session.settle()

    def on(
        self, kind: str | CommandKind, act: Callable[[Any], object], get: Callable[[], float] | None = None
    ) -> None:
        """Says how to carry out a command, the same on all ranks.

        ``act`` is called between two steps: for ``set_kl_coef`` with the new coefficient (``get`` reads it back),
        for ``scale_lr`` with the factor (without it the ``optimizer`` is scaled), for ``checkpoint`` and ``stop``
        with the step. A checkpoint's path may be returned. What ``act`` raises refuses the command.
        """
        with Guard("vitals.on"):
            self._commands.on(CommandKind(kind), act, get)

    def knob(
        self,
        name: str,
        act: Callable[[float], object],
        *,
        low: float,
        high: float,
        get: Callable[[], float] | None = None,
        value: float | None = None,
        max_change: float | None = None,
        cool_down_steps: int = 3,
    ) -> None:
        """Lets a setting of your own be changed while it trains, the same on all ranks (see `Reporter.knob`).

        ``vitals.knob("temperature", sampler.set_temperature, low=0.2, high=1.5, value=1.0)``
        """
        self.reporter.knob(
            name,
            act,
            low=low,
            high=high,
            get=get,
            value=value,
            max_change=max_change,
            cool_down_steps=cool_down_steps,
        )

    def cannot(self, kind: str | CommandKind, reason: str) -> None:
        """Says why a command can't be carried out in this loop, so that people read it instead of trying."""
        with Guard("vitals.cannot"):
            self._commands.cannot(CommandKind(kind), reason)

    def checkpoint_saved(self, step: int, folder: str = "") -> None:
        """Tells of a checkpoint that the loop wrote by itself."""
        self.reporter.event(EventKind.CHECKPOINT, step, folder=str(folder))

    def close(self, phase: Phase | str = Phase.FINISHED) -> None:
        """Says how the run ended; ``with`` does it by itself. Collective, unless the run has failed."""
        with Guard("closing the run"):
            if self._session is not None:
                self._session.close(settle=Phase(phase) is not Phase.FAILED)
        self.reporter.close(phase)

    def __enter__(self) -> Vitals:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(Phase.FINISHED if error is None else Phase.FAILED)

    @contextmanager
    def _at_work(self, what: str) -> Iterator[Any]:
        """Inside the guard, its time counted as ours; a session that does nothing where there is none."""
        began = time.perf_counter()
        with Guard(what):
            yield self._session if self._session is not None else _NOTHING
        self.reporter.spent(time.perf_counter() - began)


class _Nothing:
    """Takes every call and does nothing."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


_NOTHING = _Nothing()
