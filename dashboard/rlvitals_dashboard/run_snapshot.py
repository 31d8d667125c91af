"""What the API says of a run at one moment, and the blocks of its page that are drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from dash import dcc

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.hooks import HooksView
from rlvitals.contract.incident import IncidentView
from rlvitals.contract.view import AttemptView, CommandView, EventView, MetricView, RuleView, RunView, TextView
from rlvitals_dashboard.alert_panel import alert_list
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.command_list import command_list
from rlvitals_dashboard.command_panel import decision
from rlvitals_dashboard.components import Component, panel, rule_list, run_head, text_list
from rlvitals_dashboard.config_panel import config_panel
from rlvitals_dashboard.hook_panel import checkpoint_panel, hook_panel
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.nav import PREFIX
from rlvitals_dashboard.panels import Panel, arrange, search
from rlvitals_dashboard.run_health import health_card
from rlvitals_dashboard.run_view import View

PARTS = ("head", "health", "hooks", "decisions", "alerts", "actions", "checkpoints", "rules", "config", "texts")
"""Blocks that are each replaced only when what they show has changed."""
BESIDE = ("alerts", "actions", "checkpoints", "rules", "config")
"""Of these what stands beside the charts, below the decisions."""
MANY_METRICS = 1_000
"""Of more, the list is taken anew only after a second for each so many."""
MOST_EARLIER = 3
"""Attempts before the newest one that are drawn behind it."""


def of_parts(prints: Mapping[str, int]) -> dict[str, int]:
    """Of all that `Snapshot.prints` tells, what stands for a part of the page."""
    return {name: prints[name] for name in PARTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the API says of a run at one moment."""

    run: RunView
    metrics: Sequence[MetricView]
    alerts: Sequence[Alert]
    commands: Sequence[CommandView]
    rules: Sequence[RuleView]
    texts: Sequence[TextView]
    hooks: HooksView
    checkpoints: Sequence[EventView]
    incidents: Sequence[IncidentView] = ()
    _arranged: dict[str, tuple[Panel, ...]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    async def take(cls, api: Api, view: View) -> Snapshot:
        listed = ("metrics", view.run, view.attempt)
        metrics: Sequence[MetricView] | None = api.looks.kept(listed)
        told = await api.overview(view.run, view.attempt, metrics=metrics is None)
        if metrics is None:
            metrics = told.metrics or ()
            if len(metrics) > MANY_METRICS:
                api.looks.keep(listed, metrics, len(metrics) / MANY_METRICS)
        here = view.attempt or _newest(told.run)
        mine = [a for a in told.alerts if not here or a.attempt == here or a.state is AlertState.FIRING]
        return cls(
            run=told.run,
            metrics=metrics,
            alerts=mine,
            commands=told.commands,
            rules=told.rules,
            texts=told.texts,
            hooks=told.hooks,
            checkpoints=told.checkpoints,
            incidents=told.incidents,
        )

    @classmethod
    async def share(cls, api: Api, view: View, version: int) -> Snapshot:
        """As `take`; ``version`` is what the service has told the visitor of this run."""
        asked = ("snapshot", view.run, view.attempt, version)
        return await api.looks.ask(asked, lambda: cls.take(api, view))

    def panels(self, view: View) -> tuple[Panel, ...]:
        words = view.find.strip()
        if words not in self._arranged:
            found = search(self.metrics, self.alerts, words) if words else arrange(self.metrics, self.alerts)
            self._arranged[words] = found
        return self._arranged[words]

    def earlier(self, view: View) -> list[AttemptView]:
        """Attempts that are drawn behind the newest one, newest first; none behind a chosen one."""
        before = sorted(self.run.attempts, key=lambda a: -a.ordinal)[1:]
        return [] if view.attempt else [a for a in before if a.last_step is not None][:MOST_EARLIER]

    def drawn(self, view: View) -> list[MetricView]:
        shown = [p.drawn(p.key in view.more) for p in self.panels(view) if p.key not in view.closed]
        return [metric for metrics in shown for metric in metrics]

    def prints(self, view: View) -> dict[str, int]:
        """Of each part, and of what makes a whole new drawing of the charts needed."""
        bands = [(a.id, a.state, a.since_step, a.resolved_step, a.metric) for a in self.alerts]
        marks = [(c.id, c.step) for c in self.commands if c.state is CommandState.APPLIED]
        panels = self.panels(view)
        names = [(p.key, [m.metric for m in p.drawn(p.key in view.more)], len(p.missing)) for p in panels]
        attempts = [a.id for a in self.run.attempts]
        return {
            "head": fingerprint(replace(self.run, config={}, capabilities={})),
            "hooks": fingerprint(self.hooks),
            "checkpoints": fingerprint(self.checkpoints),
            "config": fingerprint(self.run.config),
            "decisions": fingerprint([c.id for c in self._proposed()]),
            "alerts": fingerprint([replace(a, value=None) for a in self.alerts]),
            "actions": fingerprint([c for c in self.commands if c.state is not CommandState.PROPOSED]),
            "rules": fingerprint([(r.rule, r.dormant, r.truth, r.reason) for r in self.rules]),
            "texts": fingerprint(self.texts),
            "charts": fingerprint(bands, marks, names, attempts),
            "health": fingerprint(
                self.incidents,
                [(a.id, a.acknowledged_by) for a in self.alerts],
                [(r.dormant, r.truth) for r in self.rules],
            ),
        }

    def part(self, name: str) -> Component:
        makers: dict[str, Callable[[], Component]] = {
            "head": lambda: run_head(self.run),
            "health": lambda: health_card(self.run, self.incidents, self.alerts, self.rules, self._below),
            "hooks": lambda: hook_panel(self.hooks),
            "checkpoints": lambda: checkpoint_panel(self.checkpoints),
            "config": lambda: config_panel(self.run.config),
            "decisions": self._decisions,
            "alerts": lambda: panel(t("Alerts"), alert_list(self.alerts), count=self._count()),
            "actions": lambda: panel(t("Actions"), [command_list(self.commands, PREFIX), self._ask()]),
            "rules": lambda: panel(t("Rules"), rule_list(self.rules)),
            "texts": lambda: panel(t("Recent completions"), text_list(self.texts), count=t("worst first")),
        }
        return makers[name]()

    @property
    def _below(self) -> str:
        return f"{PREFIX}run/{quote(self.run.id, safe='')}"

    def _ask(self) -> Component:
        where = f"{PREFIX}control?run={quote(self.run.id, safe='')}"
        return dcc.Link(t("Ask this run for something"), href=where, className="deed")

    def _proposed(self) -> list[CommandView]:
        return [c for c in self.commands if c.state is CommandState.PROPOSED]

    def _decisions(self) -> Component:
        waiting = self._proposed()
        if not waiting:
            return None
        return panel(t("Waits for your decision"), [decision(c, self.run) for c in waiting], key="decisions")

    def _count(self) -> str:
        firing = sum(a.state is AlertState.FIRING for a in self.alerts)
        return t("{count} firing", count=firing) if firing else ""


def _newest(run: RunView) -> str:
    return max(run.attempts, key=lambda a: a.ordinal).id if run.attempts else ""
