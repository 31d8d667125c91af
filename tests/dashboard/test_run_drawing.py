"""Charts that are there are kept where only other steps are to be seen, and made anew for anything else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from rlvitals_dashboard.api import Api, Visitor, visitor
from rlvitals_dashboard.live import Pulse
from rlvitals_dashboard.run_drawing import Drawn, draw_run
from rlvitals_dashboard.run_view import View
from tests.dashboard.fake import COOKIE, RUN, FakeService
from tests.dashboard.synthetic import lively

VIEW = View(run=RUN)


def draw(fake: FakeService, view: View, theme: str = "light", *there: Any) -> Drawn:
    async def main() -> Drawn:
        visitor.set(Visitor(cookie=COOKIE, host="localhost"))
        async with Api.of_app(fake.app) as api:
            return await draw_run(api, view, theme, *there)

    return asyncio.run(main())


def seen(first: Drawn) -> tuple[Pulse | None, list[str]]:
    """What a browser that shows it tells: the pulse, and which charts are there."""
    return Pulse.read(first.pulse), list(first.pulse["at"])


def test_other_steps_give_every_chart_another_figure_and_none_is_made_anew() -> None:
    fake = lively()
    there = seen(draw(fake, VIEW))
    zoomed = draw(fake, replace(VIEW, first=10, last=20), "light", *there)
    assert zoomed.families is None
    assert len(zoomed.parts) == len(there[1]) > 0
    assert all(part.figure["layout"]["xaxis"]["range"] == [10, 20] for part in zoomed.parts)


@pytest.mark.parametrize(
    ("view", "theme"),
    [(replace(VIEW, scale="log"), "light"), (replace(VIEW, closed=frozenset({"kl"})), "light"), (VIEW, "dark")],
)
def test_anything_else_makes_them_anew(view: View, theme: str) -> None:
    fake = lively()
    again = draw(fake, view, theme, *seen(draw(fake, VIEW)))
    assert again.families
    assert again.parts == []


def test_where_no_chart_is_any_more_they_are_made_anew() -> None:
    fake = lively()
    pulse, _ = seen(draw(fake, VIEW))
    assert draw(fake, VIEW, "light", pulse, []).families


def test_another_limit_of_a_rule_makes_them_anew() -> None:
    fake = lively()
    there = seen(draw(fake, VIEW))
    assert fake.rules, "nothing to change"
    fake.rules[0] = replace(fake.rules[0], threshold=0.123)
    assert draw(fake, VIEW, "light", *there).families
