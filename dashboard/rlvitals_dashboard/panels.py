"""What to look at first: which metrics of a run are drawn, which wait behind a click, which are missing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.metrics import BY_NAME, METRICS, Family
from rlvitals.contract.view import MetricView
from rlvitals_dashboard.language import phrase
from rlvitals_dashboard.words import FAMILIES

OWN = "own"
"""Key of the last block: names that the registry does not know, so the user's own."""

LEADS = frozenset(
    {
        "text.invalid_utf8_per_1k",
        "text.never_trained_rate",
        "text.looping_completions",
        "length.mean",
        "length.truncation_rate",
        "length.stop_rate",
        "reward.mean",
        "reward.group_std",
        "reward.zero_std_groups",
        "kl.k3",
        "kl.grad_norm",
        "kl.grad_top_id_share",
        "kl.pull_ratio",
        "kl.overflow_margin",
        "kl.coef",
        "ratio.max",
        "ratio.ess",
        "ratio.rollout_logp_diff",
        "policy.loss",
        "policy.entropy",
        "policy.forced_loss_tokens",
        "gradient.norm",
        "gradient.top_parameter_share",
        "gradient.update_ratio",
        "numerics.nonfinite",
        "numerics.logit_max",
        "numerics.logit_std",
        "progress.step_time",
        "progress.phase_rollout_s",
        "progress.phase_update_s",
        "rlvitals.overhead",
    }
)
"""What a person looks at first. An alert or a non-finite value promotes any other metric."""

MOST_LEAD, MOST_MORE = 24, 48
"""Charts that a family draws at most, at once and on demand; the others of ten thousand are searched for."""

FOUND = "found"
"""Key of the block of what a search found."""

ROW = 3
"""Charts side by side on a wide screen: a begun row is filled up."""

FOLDED = frozenset({Family.PROGRESS.value, Family.SELF.value})
"""Blocks that start closed."""

_ORDER = {metric.name: place for place, metric in enumerate(METRICS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One family. ``lead`` is drawn, ``rest`` on demand, ``missing`` has no point at all, only a reason."""

    key: str
    title: str
    lead: tuple[MetricView, ...]
    rest: tuple[MetricView, ...]
    missing: tuple[MetricView, ...]
    alerts: tuple[Alert, ...]

    def drawn(self, more: bool) -> tuple[MetricView, ...]:
        return self.lead + self.rest[:MOST_MORE] if more else self.lead


def arrange(metrics: Iterable[MetricView], alerts: Sequence[Alert]) -> tuple[Panel, ...]:
    """Families in the order of looking, metrics in the order of the registry, then the user's own names.

    Families of which nothing was measured stand behind all others.
    """
    by_key: dict[str, list[MetricView]] = {}
    for view in sorted(metrics, key=lambda m: (_ORDER.get(m.metric, len(_ORDER)), m.metric)):
        by_key.setdefault(family_of(view.metric), []).append(view)
    keys = [*(family.value for family in Family), OWN]
    panels = [_panel(key, by_key[key], alerts) for key in keys if key in by_key]
    return tuple(sorted(panels, key=lambda panel: not panel.lead))


def search(metrics: Iterable[MetricView], alerts: Sequence[Alert], words: str) -> tuple[Panel, ...]:
    """One block of the metrics in whose names all of ``words`` are; large and small letters are one."""
    wanted = words.casefold().split()
    found = [view for view in metrics if all(word in view.metric.casefold() for word in wanted)]
    panels = arrange(found, alerts)
    seen = [view for panel in panels for view in (*panel.lead, *panel.rest)]
    firing = {a.metric for panel in panels for a in panel.alerts}
    seen.sort(key=lambda view: view.metric not in firing)
    return (
        Panel(
            key=FOUND,
            title=words,
            lead=tuple(seen[:MOST_LEAD]),
            rest=tuple(seen[MOST_LEAD:]),
            missing=tuple(view for panel in panels for view in panel.missing),
            alerts=tuple(alert for panel in panels for alert in panel.alerts),
        ),
    )


def family_of(metric: str) -> str:
    return BY_NAME[metric].family.value if metric in BY_NAME else OWN


def _panel(key: str, metrics: Sequence[MetricView], alerts: Sequence[Alert]) -> Panel:
    named = {m.metric for m in metrics}
    live = tuple(a for a in alerts if a.state is AlertState.FIRING and _is_of(a.metric, key, named))
    raised = {a.metric for a in alerts if a.state is not AlertState.INACTIVE}
    seen = [m for m in metrics if m.points]
    firing = {a.metric for a in live}
    first = {m.metric for m in seen if m.metric in LEADS or m.metric in raised or _broken(m)}
    lead = [m for m in seen if m.metric in first]
    lead.sort(key=lambda m: (m.metric not in firing, m.metric not in LEADS))
    rest = [*lead[MOST_LEAD:], *(m for m in seen if m.metric not in first)]
    lead = lead[:MOST_LEAD]
    fill = -len(lead) % ROW if lead else ROW
    lead = sorted([*lead, *rest[:fill]], key=lambda m: (m.metric not in firing, m.metric not in LEADS))
    return Panel(
        key=key,
        title=FAMILIES[Family(key)] if key != OWN else phrase("Own metrics"),
        lead=tuple(lead),
        rest=tuple(rest[fill:]),
        missing=tuple(m for m in metrics if not m.points),
        alerts=live,
    )


def _is_of(metric: str, family: str, named: Set[str]) -> bool:
    """A name that the registry does not know is only the user's own where the run reports it: that a run is silent
    is measured by the service."""
    return bool(metric) and family_of(metric) == family and (family != OWN or metric in named)


def _broken(view: MetricView) -> bool:
    return view.last_value is not None and not math.isfinite(view.last_value)
