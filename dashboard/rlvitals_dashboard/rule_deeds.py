"""What a person does about a rule."""

from __future__ import annotations

from collections.abc import Mapping

from dash import html

from rlvitals.contract.view import ChannelTest
from rlvitals_dashboard.api import Api
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.components import Component, notice, visible
from rlvitals_dashboard.language import t
from rlvitals_dashboard.words import plural


async def test_fire(api: Api, subject: str, said: Mapping[str, object]) -> Component:
    """Shows what each provider said."""
    rule, severity = parts_of(subject)
    run = said.get("run")
    told = await api.test_rule(rule, severity, run.strip() if isinstance(run, str) else "")
    lines = [html.Li([html.B(test.channel), _answer(test)]) for test in told.tests]
    deaf = t("Would not hear of it: {deaf}.", deaf=", ".join(told.deaf)) if told.deaf else ""
    if not lines:
        words = deaf or t("There is no channel yet: add one on the page of channels.")
        return notice(t("Nobody would hear of this rule."), words, tone="warning")
    well = all(test.delivered for test in told.tests)
    title = t("{channels} would hear of it.", channels=plural(len(lines), "channel"))
    return html.Div(
        [notice(title, deaf, tone="good" if well else "critical"), html.Ul(lines, className="answers")]
    )


def _answer(test: ChannelTest) -> Component:
    how = t(" took the test: ") if test.delivered else t(" did not take the test: ")
    return html.Span([how, html.Q(visible(test.answer, 300)) if test.answer else t("it said nothing")])
