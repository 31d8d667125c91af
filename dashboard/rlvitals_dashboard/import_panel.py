"""What became of a log that was imported, and what the rules say of it, step by step. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.alert import Alert
from rlvitals.contract.rulebook import JudgedView
from rlvitals.contract.view import RunView
from rlvitals_dashboard.components import Component, aria, fact, folded, mark, notice, panel, visible
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import SEVERITIES
from rlvitals_dashboard.words import number, plural

LINES_MAX = 50
NAMES_MAX = 40


def report(told: Mapping[str, Any], prefix: str) -> Component:
    """The service's answer to an import, or why there is none."""
    body = told.get("body")
    body = body if isinstance(body, Mapping) else {}
    if told.get("status") != 200:
        title = str(body.get("title") or t("The service answered {status}", status=told.get("status")))
        return notice(title[:200], html.Span(visible(str(body.get("detail") or ""), 600)), tone="critical")
    return _report(body, str(told.get("file") or ""), prefix)


def _report(body: Mapping[str, Any], file: str, prefix: str) -> Component:
    run = str(body.get("run"))
    bad = int(body.get("bad_line_count") or 0)
    facts = [
        fact(t("Steps"), plural(int(body.get("steps") or 0), "step")),
        fact(t("Read as"), visible(str(body.get("format")), 40)),
        fact(t("Lines that could not be read"), f"{bad:,}"),
    ]
    words = woven("{file} is a run now. {link}", file=visible(file, 120), link=_page(run, prefix))
    parts = [
        notice(t("Imported."), words, tone="warning" if bad else "good"),
        html.Dl(facts, className="facts"),
        _bad_lines(body.get("bad_lines"), bad),
        _refused(body.get("refused")),
        _unknown(body.get("unknown_metrics")),
    ]
    return panel(t("The log"), parts)


def _page(run: str, prefix: str) -> Component:
    return dcc.Link(t("Look at its page"), href=f"{prefix}run/{quote(run, safe='')}")


def _bad_lines(lines: object, count: int) -> Component:
    """Each with its number, why, and what stands there."""
    known = [line for line in lines if isinstance(line, Mapping)] if isinstance(lines, Sequence) else []
    if not known:
        return None
    rows = [
        html.Li(
            [
                html.B(t("Line {number}: ", number=line.get("line"))),
                html.Span(visible(str(line.get("reason")), 200)),
                html.Code(visible(str(line.get("text")), 200)),
            ]
        )
        for line in known[:LINES_MAX]
    ]
    more = (
        html.Li(t("and {count} more", count=count - len(rows)), className="muted") if count > len(rows) else None
    )
    title = t("{lines} could not be read; all others are in", lines=plural(count, "line"))
    return folded(title, html.Ol([*rows, more], className="faults"), is_open=True)


def _refused(refused: object) -> Component:
    known = [one for one in refused if isinstance(one, Mapping)] if isinstance(refused, Sequence) else []
    if not known:
        return None
    rows = [html.Li(visible(f"{one.get('field', '')}: {one.get('reason', '')}", 300)) for one in known[:LINES_MAX]]
    return folded(
        t("{values} refused", values=plural(len(known), "value")), html.Ol(rows, className="faults"), is_open=True
    )


def _unknown(names: object) -> Component:
    """Metrics that no rule reads; they have their charts all the same."""
    known = [str(name) for name in names] if isinstance(names, Sequence) and not isinstance(names, str) else []
    if not known:
        return None
    shown = [html.Li(html.Code(visible(name, 120))) for name in known[:NAMES_MAX]]
    rest = len(known) - len(shown)
    more = html.Li(t("and {count} more", count=rest), className="muted") if rest > 0 else None
    title = t("{names} kept as in the log: charts, but no rule reads them", names=plural(len(known), "name"))
    return folded(title, html.Ul([*shown, more], className="faults"))


# what the rules say


def progress(judged: JudgedView) -> Component:
    """How far the rules have come."""
    last, step = judged.last_step, judged.step
    if last is None:
        return html.P(t("No step is there yet."), className="quiet")
    if step is not None and step >= last:
        return html.P(t("All steps up to {last} are judged.", last=last), className="quiet")
    bar = html.Progress(value=str(step or 0), max=str(max(last, 1)), **aria(label=t("Judged")))
    return html.Div(
        [html.Span(t("Judged up to step {step} of {last} …", step=step or 0, last=last)), bar],
        className="loading",
    )


def timeline(run: RunView, alerts: Sequence[Alert], judged: JudgedView, prefix: str) -> Component:
    """Alerts in the order in which they fired."""
    fired = sorted((a for a in alerts if a.fired_step is not None), key=lambda a: (a.fired_step or 0, a.rule))
    body: list[Component] = [progress(judged)]
    if fired:
        names = (t("Step"), t("Alert"), t("Severity"), t("Until"), t("Detail"))
        body.append(line_table(t("Alerts it would have raised"), names, [_row(a, run.id, prefix) for a in fired]))
    elif judged.step is not None and judged.step == judged.last_step:
        body.append(html.P(t("No rule would have fired on it."), className="quiet"))
    name = html.Span(visible(run.name or run.id, 80))
    return panel(
        t("Alerts it would have raised"),
        [html.P([name, ". ", _page(run.id, prefix)]), *body],
        count=str(len(fired)),
    )


def _row(alert: Alert, run: str, prefix: str) -> Component:
    at = alert.fired_step or 0
    first, last = max(0, at - 50), at + 50
    way = f"{prefix}run/{quote(run, safe='')}?from={first}&to={last}"
    until = t("open at the end") if alert.resolved_step is None else t("step {step}", step=alert.resolved_step)
    value = f" ({number(alert.value)})" if alert.value is not None else ""
    return html.Tr(
        [
            html.Td(dcc.Link(f"{at:,}", href=way)),
            html.Td(html.Code(visible(alert.rule, 64))),
            html.Td(mark(SEVERITIES[alert.severity])),
            html.Td(until),
            html.Td(visible(f"{alert.summary}{value if not alert.summary else ''}", 300), className="detail"),
        ]
    )
