"""The completions of a run: by step, worst first, one of them token by token, and what changed in a prompt's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dash import html

from rlvitals.contract.view import TextStepView, TextView
from rlvitals_dashboard import nav
from rlvitals_dashboard.api import Api, NotFound
from rlvitals_dashboard.components import Component, named
from rlvitals_dashboard.deeds import verdict_place
from rlvitals_dashboard.heart import Block, Heart, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.text_blocks import chooser, detail, listing, step_block
from rlvitals_dashboard.text_panel import fits
from rlvitals_dashboard.text_view import View, address

STEPS_SHOWN = 60
TEXTS_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``gone`` says that the chosen completion is not there any more; ``other`` is what it is compared with."""

    view: View
    steps: Sequence[TextStepView]
    texts: Sequence[TextView] = ()
    chosen: TextView | None = None
    gone: bool = False
    kin: Sequence[TextView] = ()
    other: TextView | None = None

    @classmethod
    async def take(cls, api: Api, view: View) -> Snapshot:
        steps = await api.text_steps(view.run, attempt=view.attempt, around=view.step, limit=STEPS_SHOWN)
        here = cls(view=view, steps=steps)
        if not here.steps:
            return here
        attempt = here.steps[0].attempt
        found = await api.texts(view.run, TEXTS_SHOWN, step=here.step, attempt=attempt, worst=True)
        here = replace(here, texts=[text for text in found if fits(text, view.show, view.find)])
        number = view.text or (here.texts[0].number if here.texts else 0)
        return await here._with_text(api, number) if number else here

    async def _with_text(self, api: Api, number: int) -> Snapshot:
        try:
            chosen, kin = await asyncio.gather(
                api.text(self.view.run, number), api.same_prompt(self.view.run, number)
            )
        except NotFound:
            return replace(self, gone=True)
        known = self.view.against in {one.number for one in kin}
        other = await api.text(self.view.run, self.view.against) if known else None
        return replace(self, chosen=chosen, kin=kin, other=other)

    @property
    def step(self) -> int | None:
        """Whose completions are listed; None for the worst of all."""
        if self.view.of:
            return None
        return self.view.step if self.view.step is not None else self.steps[0].step if self.steps else None

    def blocks(self, prefix: str) -> dict[str, Block]:
        def way(**changes: Any) -> str:
            return address(prefix, self.view, **changes)

        number = self.chosen.number if self.chosen else 0
        kin = [one.number for one in self.kin]
        return {
            "steps": Block(
                stamp=fingerprint(self.steps, self.step),
                make=lambda: step_block(self.steps, self.step, self.view, way),
            ),
            "list": Block(
                stamp=fingerprint(self.texts, number),
                make=lambda: listing(self.texts, number, self.view, way, any_step=bool(self.steps)),
            ),
            "text": Block(
                stamp=fingerprint(self.chosen, kin, self.gone, self.view.against),
                make=lambda: detail(self.chosen, self.kin, self.other, self.view, way, gone=self.gone),
            ),
        }


def heart(prefix: str) -> Heart:
    async def look(api: Api, query: Query) -> Mapping[str, Block]:
        view = View.read(query.get("run", ""), query)
        return (await Snapshot.take(api, view)).blocks(prefix)

    return Heart(key="texts", blocks=("steps", "list", "text"), look=look)


async def layout(api: Api, prefix: str, run: str, query: Query) -> Component:
    view = View.read(run, query)
    known, blocks = await asyncio.gather(api.run(run), heart(prefix).draw(api, view.asked() | {"run": run}))
    return html.Main(
        [
            html.Div([html.H1(t("Completions")), html.P(named(known))], className="page-head"),
            nav.run_tabs(prefix, run, "Texts"),
            chooser(view, known, lambda **changes: address(prefix, view, **changes)),
            blocks["steps"],
            html.Div(
                [html.Aside(blocks["list"]), html.Div(blocks["text"], className="main")],
                className="columns reading",
            ),
            verdict_place(),
            blocks["heart"],
        ],
        className="page texts",
    )
