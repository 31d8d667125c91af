"""Charts that are there are kept where only other steps are to be seen, and made anew for anything else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import pytest

from rlvitals_dashboard import figures
from rlvitals_dashboard.api import Api, Visitor, visitor
from rlvitals_dashboard.chart_card import ChartParts
from rlvitals_dashboard.run_drawing import Drawn, OtherSteps, draw_run, draw_steps
from rlvitals_dashboard.run_view import View
from tests.dashboard.fake import COOKIE, RUN, FakeService
from tests.dashboard.synthetic import lively

VIEW = View(run=RUN)
T = TypeVar("T")


def ask(fake: FakeService, question: Callable[[Api], Awaitable[T]]) -> T:
    async def main() -> T:
        visitor.set(Visitor(cookie=COOKIE, host="localhost"))
        async with Api.of_app(fake.app) as api:
            return await question(api)

    return asyncio.run(main())


def draw(fake: FakeService, view: View = VIEW) -> Drawn:
    return ask(fake, lambda api: draw_run(api, view, "light"))


def turn(fake: FakeService, view: View, there: Drawn, theme: str = "light", *more: str) -> OtherSteps | None:
    """What a browser that shows ``there`` is given."""
    metrics = [*there.pulse["at"], *more]
    return ask(fake, lambda api: draw_steps(api, view, theme, there.pulse["frame"], metrics))


def test_other_steps_give_every_chart_another_figure() -> None:
    fake = lively()
    there = draw(fake)
    zoomed = turn(fake, replace(VIEW, first=10, last=20), there)
    assert zoomed is not None
    assert list(zoomed.parts) == list(there.pulse["at"]) != []
    assert all(part.figure["layout"]["xaxis"]["range"] == [10, 20] for part in zoomed.parts.values())
    assert (zoomed.pulse["zoomed"], zoomed.pulse["frame"]) == (True, there.pulse["frame"])


def test_of_a_part_of_the_charts_the_axes_are_those_of_all() -> None:
    fake = lively()
    there = draw(fake)
    names = list(there.pulse["at"])
    parts: dict[str, ChartParts] = {}
    for some in (names[:2], names[2:]):
        made = ask(fake, lambda api, some=some: draw_steps(api, VIEW, "light", there.pulse["frame"], some))  # type: ignore[misc]
        assert made is not None
        assert list(made.pulse["at"]) == some
        parts |= made.parts
    assert len({str(part.figure["data"][figures.EXTENT]["x"]) for part in parts.values()}) == 1


@pytest.mark.parametrize(
    ("view", "theme"),
    [(replace(VIEW, scale="log"), "light"), (replace(VIEW, closed=frozenset({"kl"})), "light"), (VIEW, "dark")],
)
def test_anything_else_makes_them_anew(view: View, theme: str) -> None:
    fake = lively()
    assert turn(fake, view, draw(fake), theme) is None


def test_a_chart_that_is_not_on_the_page_any_more_makes_them_anew() -> None:
    fake = lively()
    assert turn(fake, VIEW, draw(fake), "light", "no.such") is None


def test_another_limit_of_a_rule_makes_them_anew() -> None:
    fake = lively()
    there = draw(fake)
    assert fake.rules, "nothing to change"
    fake.rules[0] = replace(fake.rules[0], threshold=0.123)
    assert turn(fake, VIEW, there) is None
