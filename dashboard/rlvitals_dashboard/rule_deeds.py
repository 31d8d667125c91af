"""What a person does about a rule."""

from __future__ import annotations

from collections.abc import Mapping

from dash import html

from rlvitals.contract.view import ChannelTest
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.components import Component, notice, visible
from rlvitals_dashboard.words import plural


async def test_fire(api: Api, subject: str, said: Mapping[str, object]) -> Component:
    """Shows what each provider said."""
    rule, severity = parts_of(subject)
    run = said.get("run")
    told = await api.test_rule(rule, severity, run.strip() if isinstance(run, str) else "")
    lines = [html.Li([html.B(test.channel), _answer(test)]) for test in told.tests]
    deaf = f"Would not hear of it: {', '.join(told.deaf)}." if told.deaf else ""
    if not lines:
        words = deaf or "There is no channel yet: add one on the page of channels."
        return notice("Nobody would hear of this rule.", words, tone="warning")
    well = all(test.delivered for test in told.tests)
    title = f"{plural(len(lines), 'channel')} would hear of it."
    return html.Div(
        [notice(title, deaf, tone="good" if well else "critical"), html.Ul(lines, className="answers")]
    )


def _answer(test: ChannelTest) -> Component:
    how = " took the test: " if test.delivered else " did not take the test: "
    return html.Span([how, html.Q(visible(test.answer, 300)) if test.answer else "it said nothing"])
