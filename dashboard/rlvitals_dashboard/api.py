"""Typed client of the query API; `api_wire` has how it is asked and what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from rlvitals.contract.alert import Alert
from rlvitals.contract.channelbook import ChannelBookView
from rlvitals.contract.command import CommandKind, CommandState, Policy
from rlvitals.contract.comparison import Axis, ComparisonView, SettingsView
from rlvitals.contract.health import HealthView
from rlvitals.contract.incident import IncidentStory, IncidentView
from rlvitals.contract.overview import RunOverview
from rlvitals.contract.rulebook import (
    BacktestView,
    EditedRulesView,
    JudgedView,
    RuleBoardView,
    RuleBookView,
    RuleCheckView,
    RuleSourceView,
    RuleTestView,
)
from rlvitals.contract.steering import EffectView, SteeredView, SteeringView
from rlvitals.contract.view import (
    AuditCheck,
    AuditView,
    ChannelTest,
    ChannelView,
    CommandView,
    DeliveryView,
    HistogramView,
    MetricView,
    PolicyView,
    SendView,
    SeriesView,
    SilenceView,
    TextStepView,
    TextView,
)
from rlvitals_dashboard.api_access import AccessApi
from rlvitals_dashboard.api_runs import RunsApi
from rlvitals_dashboard.api_wire import TIMEOUT_S as TIMEOUT_S
from rlvitals_dashboard.api_wire import ApiError as ApiError
from rlvitals_dashboard.api_wire import Forbidden as Forbidden
from rlvitals_dashboard.api_wire import NotFound as NotFound
from rlvitals_dashboard.api_wire import Refused as Refused
from rlvitals_dashboard.api_wire import SignInNeeded as SignInNeeded
from rlvitals_dashboard.api_wire import Unreachable as Unreachable
from rlvitals_dashboard.api_wire import Visitor as Visitor
from rlvitals_dashboard.api_wire import items, one, segment, series
from rlvitals_dashboard.api_wire import visitor as visitor

PROVIDER_TIMEOUT_S = 90.0
"""A test of a channel waits as long as the service waits for the provider."""
BACKTEST_TIMEOUT_S = 600.0
"""Rules are tried on every step of up to fifty runs."""
LONGEST_WAIT_S = 20.0
"""How long one question for changes may stay open; the page asks again after it."""
PAGE_ITEMS = 200
CHART_BUCKETS = 400
"""Points a chart asks for: charts are about 400 px wide."""
METRICS_PER_REQUEST, TAILS_PER_REQUEST = 20, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    version: int
    last_step: int | None = None


class Api(AccessApi, RunsApi):
    """``Api.of_app(app)`` in one process, ``Api.of_url(url, token)`` else."""

    async def rulebook(self) -> RuleBookView:
        return one(RuleBookView, await self._get("/rules/status"))

    async def channel_book(self) -> ChannelBookView:
        return one(ChannelBookView, await self._get("/channels/status"))

    async def health(self) -> HealthView:
        return one(HealthView, await self._get("/health"))

    # one run

    async def overview(self, run: str, attempt: str = "", *, metrics: bool = True) -> RunOverview:
        """All that its page shows, but the charts; without ``metrics`` its are None."""
        path = f"/runs/{segment(run)}/overview"
        return one(RunOverview, await self._get(path, attempt=attempt, metrics=None if metrics else "false"))

    async def tails(
        self, run: str, metrics: Sequence[str], *, attempt: str = "", first: int, limit: int = CHART_BUCKETS
    ) -> dict[str, SeriesView]:
        """As `series`, of what a page appends: a metric without a point from step ``first`` on is absent."""
        found: dict[str, SeriesView] = {}
        for start in range(0, len(metrics), TAILS_PER_REQUEST):
            some = list(metrics[start : start + TAILS_PER_REQUEST])
            query: dict[str, Any] = {"metric": some, "attempt": attempt, "from": first, "limit": limit}
            body = await self._get(f"/runs/{segment(run)}/tails", **query)
            found |= {view.metric: view for view in items(SeriesView, body)}
        return found

    async def metrics(self, run: str, attempt: str = "") -> tuple[MetricView, ...]:
        return items(MetricView, await self._get(f"/runs/{segment(run)}/metrics", attempt=attempt))

    async def series(
        self,
        run: str,
        metrics: Sequence[str],
        *,
        attempt: str = "",
        first: int | None = None,
        last: int | None = None,
        limit: int = CHART_BUCKETS,
    ) -> dict[str, SeriesView]:
        """By metric, steps ``first`` to ``last`` inclusive; a metric without a point among them may be absent."""
        found: dict[str, SeriesView] = {}
        for start in range(0, len(metrics), METRICS_PER_REQUEST):
            some = list(metrics[start : start + METRICS_PER_REQUEST])
            query: dict[str, Any] = {"metric": some, "attempt": attempt, "from": first, "to": last, "limit": limit}
            body = await self._get(f"/runs/{segment(run)}/series", **query)
            found |= {view.metric: view for view in series(body)}
        return found

    async def histograms(
        self,
        run: str,
        metric: str,
        *,
        attempt: str = "",
        first: int | None = None,
        last: int | None = None,
        columns: int = 100,
    ) -> tuple[HistogramView, ...]:
        """Of at most ``columns`` steps, spread evenly over those between ``first`` and ``last``."""
        query: dict[str, Any] = {
            "metric": metric,
            "attempt": attempt,
            "from": first,
            "to": last,
            "columns": columns,
        }
        return items(HistogramView, await self._get(f"/runs/{segment(run)}/histograms", **query))

    async def texts(
        self, run: str, limit: int = 12, *, step: int | None = None, attempt: str = "", worst: bool = False
    ) -> tuple[TextView, ...]:
        """The newest, or the worst first."""
        query: dict[str, Any] = {"limit": limit, "step": step, "attempt": attempt, "worst": worst or None}
        return items(TextView, await self._get(f"/runs/{segment(run)}/texts", **query))

    async def text(self, run: str, number: int) -> TextView:
        """With its tokens."""
        return one(TextView, await self._get(f"/runs/{segment(run)}/texts/{number}"))

    async def same_prompt(self, run: str, number: int, limit: int = 24) -> tuple[TextView, ...]:
        path = f"/runs/{segment(run)}/texts/{number}/same-prompt"
        return items(TextView, await self._get(path, limit=limit))

    async def text_steps(
        self, run: str, *, attempt: str = "", around: int | None = None, limit: int = 60
    ) -> tuple[TextStepView, ...]:
        """Latest first; with ``around`` half of them lie after that step."""
        query: dict[str, Any] = {"attempt": attempt, "around": around, "limit": limit}
        return items(TextStepView, await self._get(f"/runs/{segment(run)}/texts/steps", **query))

    async def alerts(self, run: str) -> tuple[Alert, ...]:
        return items(Alert, await self._get("/alerts", run=run, limit=PAGE_ITEMS))

    async def open_incidents(self) -> tuple[IncidentView, ...]:
        """Of all runs, the strongest first."""
        return items(IncidentView, await self._get("/incidents"))

    async def incidents(self, run: str, attempt: str = "") -> tuple[IncidentView, ...]:
        """Of one attempt, by default the newest, in the order of onset."""
        return items(IncidentView, await self._get(f"/runs/{segment(run)}/incidents", attempt=attempt))

    async def incident(self, run: str, cause: str, attempt: str = "") -> IncidentStory:
        path = f"/runs/{segment(run)}/incidents/{segment(cause)}"
        return one(IncidentStory, await self._get(path, attempt=attempt))

    async def changes(self, run: str | None, after: int, wait_s: float = LONGEST_WAIT_S) -> Change:
        """Answers when something moved past ``after``, at the latest after ``wait_s``. ``run=None``: any run."""
        path = f"/runs/{segment(run)}/changes" if run else "/changes"
        body = await self._get(path, timeout=wait_s + TIMEOUT_S, after=after, wait_s=wait_s)
        return one(Change, body)

    # runs side by side

    async def compared(
        self,
        runs: Sequence[str],
        metrics: Sequence[str],
        by: Axis = Axis.STEP,
        first: float | None = None,
        last: float | None = None,
        healthy: Sequence[str] = (),
    ) -> ComparisonView:
        """``healthy``: empty for the project's own, ``none`` for no band."""
        query: dict[str, Any] = {"run": list(runs), "metric": list(metrics), "by": by.value}
        query |= {"from": first, "to": last, "healthy": list(healthy) or None, "limit": CHART_BUCKETS}
        return one(ComparisonView, await self._get("/compare", **query))

    async def compared_settings(self, runs: Sequence[str]) -> SettingsView:
        return one(SettingsView, await self._get("/compare/settings", run=list(runs)))

    # control

    async def commands(self, run: str = "", state: CommandState | None = None) -> tuple[CommandView, ...]:
        """The newest, of one run or of all, in one state or in any."""
        chosen = state.value if state else None
        return items(CommandView, await self._get("/commands", run=run, state=chosen, limit=PAGE_ITEMS))

    async def ask(
        self, run: str, kind: CommandKind, argument: float | None = None, why: str = "", knob: str = ""
    ) -> CommandView:
        """A person's own command. Where one person is enough it needs no further approval."""
        body = {"kind": kind.value, "argument": argument, "why": why} | ({"knob": knob} if knob else {})
        return one(CommandView, await self._post(f"/runs/{segment(run)}/commands", body))

    async def approve(self, command: str, argument: float | None = None) -> CommandView:
        body = {} if argument is None else {"argument": argument}
        return one(CommandView, await self._post(f"/commands/{segment(command)}/approve", body))

    async def deny(self, command: str, reason: str = "") -> None:
        await self._post(f"/commands/{segment(command)}/deny", {"reason": reason})

    async def command(self, command: str) -> CommandView:
        """One of any run."""
        return one(CommandView, await self._get(f"/commands/{segment(command)}"))

    async def audit(self, wanted: Mapping[str, str]) -> tuple[tuple[AuditView, ...], str]:
        """Newest first, and the cursor of older lines ("" where there are none). ``wanted`` may have run, command,
        who, what and cursor."""
        query: dict[str, Any] = {**wanted, "limit": PAGE_ITEMS}
        body = await self._get("/audit", **query)
        return items(AuditView, body), str(body.get("next") or "")

    async def audit_check(self) -> AuditCheck:
        """Walks the whole chain."""
        return one(AuditCheck, await self._get("/audit/check", timeout=PROVIDER_TIMEOUT_S))

    async def policies(self) -> tuple[PolicyView, ...]:
        return items(PolicyView, await self._get("/policies"))

    async def choose_policy(self, scope: str, name: str, policy: Policy) -> PolicyView:
        body = {"scope": scope, "name": name, "policy": policy.value}
        return one(PolicyView, await self._post("/policies", body, method="PUT"))

    async def take_policy_back(self, scope: str, name: str) -> None:
        await self._send("DELETE", "/policies", params={"scope": scope, "name": name}, timeout=TIMEOUT_S)

    async def effect(self, command: str) -> EffectView:
        return one(EffectView, await self._get(f"/commands/{segment(command)}/effect"))

    async def steering(self) -> tuple[SteeringView, ...]:
        return items(SteeringView, await self._get("/steering"))

    async def steer(self, scope: str, name: str, kl_policy: str, target: float | None = None) -> SteeringView:
        body = {"scope": scope, "name": name, "kl_policy": kl_policy, "target": target}
        return one(SteeringView, await self._post("/steering", body, method="PUT"))

    async def take_steering_back(self, scope: str, name: str) -> None:
        await self._send("DELETE", "/steering", params={"scope": scope, "name": name}, timeout=TIMEOUT_S)

    async def steered(self, run: str) -> SteeredView:
        return one(SteeredView, await self._get(f"/runs/{segment(run)}/steering"))

    # who is told

    async def silences(self) -> tuple[SilenceView, ...]:
        return items(SilenceView, await self._get("/silences", limit=PAGE_ITEMS))

    async def silence(self, wish: Mapping[str, Any]) -> SilenceView:
        """``wish`` has ``match`` and the times; see the service's own description of it."""
        return one(SilenceView, await self._post("/silences", wish))

    async def end_silence(self, silence: str) -> None:
        await self._post(f"/silences/{segment(silence)}/end", {})

    async def silence_alert(self, alert: str, lasts_s: float) -> SilenceView:
        """Its rule, on its run."""
        return one(SilenceView, await self._post(f"/alerts/{segment(alert)}/silence", {"lasts_s": lasts_s}))

    async def channels(self) -> tuple[ChannelView, ...]:
        return items(ChannelView, await self._get("/channels"))

    async def test_channel(self, channel: str) -> ChannelTest:
        """Waits for the provider."""
        body = await self._post(f"/channels/{segment(channel)}/test", {}, timeout=PROVIDER_TIMEOUT_S)
        return one(ChannelTest, body)

    async def make_channel(self, body: Mapping[str, Any]) -> None:
        """``body`` has the keys of a channel in a channel file."""
        await self._post("/channels", body)

    async def remove_channel(self, channel: str) -> None:
        await self._send("DELETE", f"/channels/{segment(channel)}", timeout=TIMEOUT_S)

    async def sends(self, delivery: str) -> tuple[SendView, ...]:
        """Each attempt at the message that it went into, oldest first."""
        return items(SendView, await self._get(f"/deliveries/{segment(delivery)}/sends"))

    async def deliveries(self) -> tuple[DeliveryView, ...]:
        return items(DeliveryView, await self._get("/deliveries", limit=PAGE_ITEMS))

    async def unacknowledge(self, alert: str) -> None:
        await self._post(f"/alerts/{segment(alert)}/unacknowledge", {})

    async def acknowledge(self, alert: str) -> None:
        await self._post(f"/alerts/{segment(alert)}/acknowledge", {})

    async def escalate(self, alert: str, channel: str) -> None:
        await self._post(f"/alerts/{segment(alert)}/escalate", {"channel": channel})

    # rules

    async def rule_board(self, run: str = "") -> RuleBoardView:
        """Of one run, or of all that are going on."""
        return one(RuleBoardView, await self._get("/rules/standing", run=run))

    async def rule_source(self, rule: str, severity: str) -> RuleSourceView:
        return one(RuleSourceView, await self._get(f"/rules/{segment(rule)}/source", severity=severity))

    async def test_rule(self, rule: str, severity: str, run: str = "") -> RuleTestView:
        """Waits for the providers."""
        told = urlencode({"severity": severity, "run": run})
        body = await self._post(f"/rules/{segment(rule)}/test?{told}", {}, timeout=PROVIDER_TIMEOUT_S)
        return one(RuleTestView, body)

    async def rule_versions(self) -> tuple[EditedRulesView, ...]:
        """Every edit, newest first."""
        return items(EditedRulesView, await self._get("/rules/edited/versions"))

    async def check_rules(self, text: str) -> RuleCheckView:
        return one(RuleCheckView, await self._post("/rules/check", {"text": text}))

    async def edit_rules(self, text: str, base: int, why: str) -> EditedRulesView:
        """Refused where somebody was faster."""
        body = {"text": text, "base": base, "why": why}
        return one(EditedRulesView, await self._post("/rules/edited", body, method="PUT"))

    async def backtest(self, runs: Mapping[str, int | None], text: str) -> BacktestView:
        """``runs`` lead to their first bad step, None for those that were well; held against what is in force."""
        chosen = [{"run": run, "bad": since is not None, "since": since} for run, since in runs.items()]
        body = {"runs": chosen, "edited": text, "against": ""}
        return one(BacktestView, await self._post("/rules/backtest", body, timeout=BACKTEST_TIMEOUT_S))

    async def judged(self, run: str) -> JudgedView:
        return one(JudgedView, await self._get(f"/runs/{segment(run)}/judged"))
