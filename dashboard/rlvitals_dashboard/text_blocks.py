"""The blocks of the page of completions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from rlvitals.contract.view import RunView, TextStepView, TextView
from rlvitals_dashboard import token_heat
from rlvitals_dashboard.components import Component, attempt_choices, notice, panel, text_signs, visible, why_kept
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.text_panel import (
    Way,
    difference,
    no_texts,
    prompt_fold,
    same_prompt,
    script_bar,
    step_strip,
    strip_key,
    text_links,
)
from rlvitals_dashboard.text_view import LONGEST_WORDS, SHOWS, View
from rlvitals_dashboard.token_panel import TOKENS_SHOWN, heat_choice, heat_legend, token_view

LONGEST_PLAIN = 20_000


def chooser(view: View, run: RunView, way: Way) -> Component:
    """A form as the web knows it: the answer is a page with an address of its own."""
    shown = [
        dcc.Link(t(word), href=way(show=key, text=""), className="chip here" if key == view.show else "chip")
        for key, word in SHOWS.items()
    ]
    step = "" if view.step is None else view.step
    kept = {"attempt": view.attempt, "show": view.show, "heat": view.heat}
    hidden = [dcc.Input(type="hidden", name=name, value=value) for name, value in kept.items() if value]
    form = html.Form(
        [
            html.Label([t("Step"), dcc.Input(name="step", value=step, inputMode="numeric", maxLength=17)]),
            html.Label([t("Containing"), dcc.Input(name="find", value=view.find, maxLength=LONGEST_WORDS)]),
            *hidden,
            html.Button(t("Show"), type="submit", className="button"),
        ],
        action=way(),
        method="GET",
        className="filter",
    )
    return html.Div([form, html.Div(shown, className="chips"), *_attempts(view, run, way)], className="filters")


def _attempts(view: View, run: RunView, way: Way) -> list[Component]:
    if len(run.attempts) < 2:
        return []
    links = [
        dcc.Link(
            choice["label"],
            href=way(attempt=choice["value"], step=None, text="", of=""),
            className="chip here" if choice["value"] == view.attempt else "chip",
        )
        for choice in attempt_choices(run)[:8]
    ]
    return [html.Div(links, className="chips")]


def step_block(steps: Sequence[TextStepView], here: int | None, view: View, way: Way) -> Component:
    """``here`` is the step whose completions are listed, None for those of all."""
    if not steps:
        return None
    known = [s.step for s in steps]
    older = max((s for s in known if here is not None and s < here), default=None)
    newer = min((s for s in known if here is not None and s > here), default=None)
    follows = view.step is None and not view.of
    ways = [
        _way(t("‹ Older step"), older, "ArrowLeft", way),
        _way(t("Newer step ›"), newer, "ArrowRight", way),
        _choice(t("Newest, as it comes"), follows, way(step=None, of="", text="")),
        _choice(t("Worst of the whole attempt"), bool(view.of), way(step=None, of="run", text="")),
    ]
    title = t("All steps") if here is None else t("Step {here}", here=here)
    return panel(
        title, [html.Div(ways, className="chips"), step_strip(steps, here, way), strip_key()], key="step-panel"
    )


def _way(label: str, step: int | None, key: str, way: Way) -> Component:
    """``key`` is the key of a keyboard that leads there too, see assets/texts.js."""
    if step is None:
        return html.Span(label, className="chip off")
    asked_by: dict[str, Any] = {"data-key": key}
    return html.Span(dcc.Link(label, href=way(step=step, text="", of=""), className="chip"), **asked_by)


def _choice(label: str, is_here: bool, href: str) -> Component:
    return dcc.Link(label, href=href, className="chip here" if is_here else "chip")


def listing(texts: Sequence[TextView], here: int, view: View, way: Way, *, any_step: bool) -> Component:
    """``any_step`` is False where the run has no completion at all."""
    if not any_step:
        return no_texts()
    if not texts:
        words = (
            t("No completion of this step fits.")
            if view.show or view.find
            else t("No completion of this step was kept.")
        )
        return panel(
            t("Completions"), [html.P(words), dcc.Link(t("Show all"), href=way(show="", find="", text=""))]
        )
    links = text_links(texts, here, way, name_step=bool(view.of))
    return panel(t("Completions"), links, count=t("{count}, worst first", count=len(texts)))


def detail(
    text: TextView | None, kin: Sequence[TextView], other: TextView | None, view: View, way: Way, *, gone: bool
) -> Component:
    """One completion; ``gone`` says that it is not there any more."""
    if gone:
        words = woven(
            "It was deleted, or its address is wrong. {link}",
            link=dcc.Link(t("Show the others"), href=way(text="")),
        )
        return notice(t("This completion is not here"), words, tone="warning")
    if text is None:
        return None
    title = t("Step {step}, sample {sample}", step=text.step, sample=text.sample)
    return [
        panel(title, _reading(text, view, way), count=why_kept(text.why)),
        panel(t("Scripts"), script_bar(text.completion)),
        panel(
            t("Other completions of the prompt"),
            [same_prompt(kin, view.against, way), difference(text, other) if other is not None else None],
        ),
    ]


def _reading(text: TextView, view: View, way: Way) -> list[Component]:
    told = text.tokens
    heat = token_heat.BY_KEY.get(view.heat)
    heat = heat if heat in token_heat.offered(told) else None
    head = [html.Div(text_signs(text), className="signs"), prompt_fold(text)]
    if told is None or not told.pieces or not text.token_ids:
        words = t(
            "The trainer told no bytes of its tokens: where a decoder put U+FFFD, what stood there is not known."
        )
        return [
            *head,
            html.Pre(visible(text.completion, LONGEST_PLAIN), className="completion whole", tabIndex=0),
            html.P(words, className="quiet"),
        ]
    hrefs = {key: way(heat=key) for key in ("", *token_heat.BY_KEY)}
    return [
        *head,
        heat_choice(told, heat, hrefs),
        heat_legend(heat) if heat is not None else None,
        token_view(text, heat, view.at),
        _pages(len(text.token_ids), view.at, way),
    ]


def _pages(count: int, at: int, way: Way) -> Component:
    words = html.Span(t("{count} tokens", count=count), className="muted")
    if count <= TOKENS_SHOWN and not at:
        return html.Div(words, className="chips")
    last = min(at + TOKENS_SHOWN, count)
    ways: list[Component] = [
        html.Span(t("Tokens {at} to {last} of {count}", at=at, last=last - 1, count=count), className="muted")
    ]
    if at:
        ways.append(dcc.Link(t("‹ Tokens before"), href=way(at=max(at - TOKENS_SHOWN, 0)), className="chip"))
    if last < count:
        ways.append(dcc.Link(t("Tokens after ›"), href=way(at=last), className="chip"))
    return html.Div(ways, className="chips")
