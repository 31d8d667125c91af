"""Finished steps → the reporter: at once, when a device is done, or together with the other ranks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from rlvitals.contract.metrics import BY_NAME
from rlvitals.contract.report import Extreme
from rlvitals.guard import Guard
from rlvitals.integrations.pieces import GRADIENT, LOSS
from rlvitals.integrations.ranks import Ranks
from rlvitals.integrations.samples import GENERATED, RATIOS, Sample
from rlvitals.integrations.steps import Finished
from rlvitals.probes.ledger import LEDGER
from rlvitals.probes.measured import Measured
from rlvitals.probes.reduction import Pending
from rlvitals.probes.tally import Tally
from rlvitals.probes.tokens import TokenTable
from rlvitals.reporter import Reporter, Resolved

REUSED = "no generation in this step: it trains on the previous one's completions"
NO_NORM = "the trainer computed no gradient norm in this step"
OWED_MAX = 4
"""Steps whose worst completion waits to be told; each holds its batch's ids."""
AVERAGED = ("kl.grad_norm",)
"""What grows with the loss: of the ranks' losses the mean is trained on, so each weighs its share only."""


@dataclass(slots=True, kw_only=True)
class Teller:
    """Lives on every rank; only rank 0's reporter is enabled. ``table`` names tokens where there is one.

    ``withheld`` are metrics that do not hold for this trainer, ``absent`` what it cannot give, with the reasons.
    ``own`` are the integration's reasons, which go before the general ones. ``tells`` are the registry's metrics
    that are this process's to tell where several write one run (None: all).
    """

    reporter: Reporter
    ranks: Ranks
    withheld: Mapping[str, str] = field(default_factory=dict)
    absent: Tally = field(default_factory=Tally.zero)
    own: Mapping[str, str] = field(default_factory=dict)
    tells: frozenset[str] | None = None
    table: TokenTable | None = None
    _late: bool | None = None
    _waiting: Finished | None = None
    _owed: deque[tuple[Finished, int]] = field(default_factory=lambda: deque(maxlen=OWED_MAX))

    def tell(self, finished: Finished) -> None:
        """Collective over ranks. On a GPU with several ranks a step is told one step later, when it is copied."""
        self._pay()
        with Guard("taking what guards did"):
            finished = replace(finished, tally=finished.tally + LEDGER.take())
        if self.ranks.alone:
            self._tell_alone(finished)
            return
        if self._late is None:
            self._late = self.ranks.agree_to_be_late(finished.pending is not None)
        if self._late:
            self.settle()
            self._waiting = finished
        else:
            self._tell_together(finished)

    def settle(self) -> None:
        """Collective: tells the step that waited for its device."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._tell_together(waiting)
        self._pay()

    def tell_sample(self, step: int, sample: Sample) -> None:
        self.reporter.text(
            step,
            sample.sample,
            sample.completion,
            prompt=sample.prompt,
            token_ids=sample.token_ids,
            reward=sample.reward,
            truncated=sample.truncated,
            invalid_utf8=sample.invalid_utf8,
            why=sample.why,
            tokens=sample.tokens,
        )

    def _tell_alone(self, finished: Finished) -> None:
        pending = finished.pending
        if pending is None:
            self._write(finished, finished.tally)
            return
        self.reporter.report_when(finished.step, pending.ready, partial(self._resolved, finished, pending))

    def _resolved(self, finished: Finished, pending: Pending) -> Resolved:
        found = self._measured(finished, finished.tally + pending.tally())
        self._owe(finished, found.extremes)
        return found.values, found.missing, found.extremes

    def _tell_together(self, finished: Finished) -> None:
        tally = finished.tally
        with Guard("waiting for the device"):
            tally = tally + finished.pending.tally() if finished.pending else tally
        self._write(finished, self.ranks.gather(tally))

    def _write(self, finished: Finished, tally: Tally) -> None:
        with Guard("reporting the step"):
            if not self.reporter.enabled:
                return
            began = time.perf_counter()
            found = self._measured(finished, tally)
            self.reporter.spent(time.perf_counter() - began)
            self.reporter.report(finished.step, found.values, missing=found.missing, extremes=found.extremes)
            self._owe(finished, found.extremes)
            for metric, (edges, counts) in found.histograms.items():
                self.reporter.histogram(finished.step, metric, edges, counts)

    def _owe(self, finished: Finished, extremes: Mapping[str, Extreme]) -> None:
        """Notes the completion with the largest ratio, from whichever thread."""
        if finished.shelf is None:
            return
        named = (extremes[name].sample for name in RATIOS if name in extremes)
        worst = next((number for number in named if number is not None), None)
        if worst is not None and worst not in finished.kept:
            self._owed.append((finished, worst))

    def _pay(self) -> None:
        """Tells what was noted, in the training's own thread: a tokenizer must not be used from two at once."""
        with Guard("telling the completion with the largest ratio"):
            while self._owed:
                finished, worst = self._owed.popleft()
                sample = finished.shelf(worst, "worst_ratio") if finished.shelf is not None else None
                if sample is not None:
                    self.tell_sample(finished.step, sample)

    def _measured(self, finished: Finished, tally: Tally) -> Measured:
        """The registry's values of a merged tally, beside the scalars and the reasons for what is missing."""
        found = tally.measured()
        values = {**finished.values, **found.values}
        missing = {
            **dict.fromkeys(GENERATED, REUSED),
            GRADIENT: NO_NORM,
            **self.absent.missing,
            **found.missing,
            **self.own,
            **self.withheld,
        }
        if LOSS in tally.sums:
            values[LOSS] = tally.sums[LOSS] / self.ranks.size
        if GRADIENT in tally.sums:
            values[GRADIENT] = tally.sums[GRADIENT]
        values |= {name: values[name] / self.ranks.size for name in AVERAGED if name in values}
        values = {name: v for name, v in values.items() if name not in self.withheld and self._is_ours(name)}
        named = Measured(values=values, extremes=found.extremes, histograms=found.histograms)
        if self.table is not None:
            named = self.table.named(named)
        return Measured(
            values=values,
            missing={
                name: reason for name, reason in missing.items() if name not in values and self._is_ours(name)
            },
            extremes={name: extreme for name, extreme in named.extremes.items() if self._is_ours(name)},
            histograms={name: bins for name, bins in named.histograms.items() if self._is_ours(name)},
        )

    def _is_ours(self, name: str) -> bool:
        return self.tells is None or name in self.tells or name not in BY_NAME
