from __future__ import annotations

import math
from datetime import datetime, timezone

from rlvitals.contract.alert import Alert, AlertState, Severity
from rlvitals.contract.metrics import BY_NAME, METRICS
from rlvitals.contract.view import MetricView
from rlvitals_dashboard.panels import LEADS, MOST_LEAD, MOST_MORE, OWN, ROW, arrange, search


def view(metric: str, value: float | None = 1.0, points: int = 5, why: str = "") -> MetricView:
    return MetricView(metric=metric, points=points, last_value=value, missing_reason=why)


def alert(metric: str, state: AlertState = AlertState.FIRING) -> Alert:
    return Alert(
        id="a",
        run="r",
        attempt="a",
        rule="rule",
        severity=Severity.WARNING,
        state=state,
        since_step=1,
        since_time=datetime(2026, 3, 1, tzinfo=timezone.utc),
        metric=metric,
    )


def test_families_come_in_the_order_of_looking_and_own_names_last() -> None:
    panels = arrange([view("my.score"), view("gradient.norm"), view("text.id0_share")], [])
    assert [p.key for p in panels] == ["text", "gradient", OWN]


def test_families_of_which_nothing_was_measured_stand_last() -> None:
    metrics = [view("critic.value_loss", None, 0, "no value head"), view("gradient.norm"), view("my.score")]
    assert [p.key for p in arrange(metrics, [])] == ["gradient", OWN, "critic"]


def test_not_all_metrics_are_drawn_at_once_and_none_is_lost() -> None:
    panels = arrange([view(m.name) for m in METRICS], [])
    lead = [m.metric for p in panels for m in p.lead]
    rest = [m.metric for p in panels for m in p.rest]
    assert len(lead) < len(METRICS) * 0.7
    assert sorted([*lead, *rest]) == sorted(BY_NAME)


def test_every_lead_is_a_registered_metric() -> None:
    assert set(BY_NAME) >= LEADS


def test_a_firing_alert_puts_its_metric_first() -> None:
    (panel,) = arrange([view(m.name) for m in METRICS if m.name.startswith("kl.")], [alert("kl.grad_max")])
    assert panel.lead[0].metric == "kl.grad_max"
    assert [a.metric for a in panel.alerts] == ["kl.grad_max"]


def test_that_a_run_is_silent_is_measured_by_the_service_and_no_own_metric_of_its() -> None:
    alerts = [alert("run.silence_s"), alert("my.score")]
    (panel,) = arrange([view("my.score")], alerts)
    assert [a.metric for a in panel.alerts] == ["my.score"]


def test_a_value_that_is_not_finite_brings_its_metric_forward() -> None:
    metrics = [
        view(m.name, math.nan if m.name == "text.id0_share" else 1.0) for m in METRICS if m.name[:4] == "text"
    ]
    (panel,) = arrange(metrics, [])
    assert "text.id0_share" in {m.metric for m in panel.lead}


def test_a_missing_metric_is_listed_and_never_drawn() -> None:
    (panel,) = arrange([view("ratio.max", None, 0, "no old log-probs")], [])
    assert panel.drawn(more=True) == ()
    assert [m.missing_reason for m in panel.missing] == ["no old log-probs"]


def test_a_begun_row_is_filled_up() -> None:
    panels = arrange([view(m.name) for m in METRICS], [])
    assert all(len(p.lead) % ROW == 0 or not p.rest for p in panels)


def test_own_names_under_a_known_prefix_stay_own() -> None:
    (panel,) = arrange([view("kl.my_variant")], [])
    assert panel.key == OWN


def test_a_search_finds_all_words_in_any_case_and_firing_first() -> None:
    metrics = [
        view("kl.k1"),
        view("kl.grad_max"),
        view("reward.mean"),
        view("KL.Grad_own"),
        view("kl.k3", None, 0, "no"),
    ]
    (panel,) = search(metrics, [alert("kl.grad_max")], " GRAD kl ")
    assert [m.metric for m in panel.lead] == ["kl.grad_max", "KL.Grad_own"]
    (panel,) = search(metrics, [], "kl.k")
    assert [m.metric for m in panel.missing] == ["kl.k3"]


def test_a_search_that_finds_nothing_is_an_empty_block() -> None:
    (panel,) = search([view("kl.k1")], [], "<b>")
    assert (panel.lead, panel.rest, panel.missing) == ((), (), ())


def test_ten_thousand_metrics_draw_few_charts_and_none_is_lost() -> None:
    metrics = [view(f"own.{n}", math.nan) for n in range(10_000)]
    (panel,) = arrange(metrics, [])
    assert len(panel.drawn(more=False)) <= MOST_LEAD
    assert len(panel.drawn(more=True)) <= MOST_LEAD + MOST_MORE
    assert len(panel.lead) + len(panel.rest) == 10_000
    (found,) = search(metrics, [], "own.99")
    assert len(found.drawn(more=False)) <= MOST_LEAD
    assert len(found.lead) + len(found.rest) == 111
