"""Kept completions: the steps that have any, those of one step, one of them, and what changed since another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from dash import dcc, html

from rlvitals.contract.view import TextStepView, TextView
from rlvitals_dashboard.components import Component, aria, folded, panel, text_signs, visible, why_kept
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.script_mix import SCRIPTS, script_mix
from rlvitals_dashboard.spelling import byte_pieces, plainly
from rlvitals_dashboard.text_diff import compare, is_cut
from rlvitals_dashboard.token_panel import shown_pieces
from rlvitals_dashboard.words import number, plural

Way = Callable[..., str]
"""The address of the same page with some of its choices changed."""

_EXCERPT = 220
OTHERS_SHOWN = 6


def fits(text: TextView, show: str, find: str) -> bool:
    """``show`` is a key of `text_view.SHOWS`; ``find`` is looked for in both texts, whatever its case."""
    kinds = {"broken": bool(text.invalid_utf8), "cut": bool(text.truncated), "kept": text.why != "reservoir"}
    words = find.casefold()
    return kinds.get(show, True) and (words in text.completion.casefold() or words in text.prompt.casefold())


def step_strip(steps: Sequence[TextStepView], here: int | None, way: Way) -> Component:
    """``steps`` latest first; drawn from the oldest on, each as high as it has broken sequences."""
    most = max((s.invalid_utf8 for s in steps), default=0)
    bars = [_bar(step, most, step.step == here, way) for step in reversed(steps)]
    return html.Div(
        bars, className="strip", role="region", tabIndex=0, **aria(label=t("Steps with completions, oldest first"))
    )


def strip_key() -> Component:
    """What the bars tell, shape and word beside the colour."""
    tones = {
        "critical": t("with broken bytes, the higher the more"),
        "warning": t("cut by the limit"),
        "idle": t("neither"),
    }
    signs = [
        html.Span([html.Span("■", className=f"mark tone-{tone}", **aria(hidden="true")), " ", words])
        for tone, words in tones.items()
    ]
    return html.P(signs, className="strip-key")


def _bar(step: TextStepView, most: int, is_here: bool, way: Way) -> Component:
    height = round(100 * math.log1p(step.invalid_utf8) / math.log1p(most)) if most else 0
    told = t("Step {step}: {completions}", step=step.step, completions=plural(step.texts, "completion"))
    told += f", {plural(step.invalid_utf8, 'broken sequence')}" if step.invalid_utf8 else ""
    told += t(", {truncated} cut", truncated=step.truncated) if step.truncated else ""
    fill = html.Span(className="fill", style={"height": f"{max(height, 6)}%"})
    tone = "critical" if step.invalid_utf8 else "warning" if step.truncated else "idle"
    classes = f"bar tone-{tone}{' here' if is_here else ''}"
    return dcc.Link(
        [fill, html.Span(told, className="unseen")],
        href=way(step=step.step, text=""),
        title=told,
        className=classes,
    )


def text_links(texts: Sequence[TextView], here: int, way: Way, *, name_step: bool) -> Component:
    """The completions to choose from, in the order in which they came."""
    return html.Ol([_entry(text, text.number == here, way, name_step) for text in texts], className="text-links")


def _entry(text: TextView, is_here: bool, way: Way, name_step: bool) -> Component:
    title = (
        t("step {step}, sample {sample}", step=text.step, sample=text.sample)
        if name_step
        else t("sample {sample}", sample=text.sample)
    )
    start = text.completion[:_EXCERPT]
    link = dcc.Link(
        [
            html.Span([html.Strong(title), html.Span(why_kept(text.why), className="muted")]),
            html.Span(text_signs(text)),
            html.Span(visible(start) or t("(empty)"), className="start"),
        ],
        href=way(text=text.number),
        className="entry here" if is_here else "entry",
    )
    return html.Li(link)


def script_bar(completion: str) -> Component:
    mix = script_mix(completion)
    if not mix:
        return html.P(t("No letters: no script to tell."), className="quiet")
    parts = [
        html.Span(className=f"part script-{key}", style={"width": f"{100 * share:.2f}%"}) for key, share in mix
    ]
    words = [
        html.Li([html.Span(className=f"swatch script-{key}"), f"{t(SCRIPTS[key])} {100 * share:.3g} %"])
        for key, share in mix
    ]
    return html.Div(
        [html.Div(parts, className="script-bar", **aria(hidden="true")), html.Ul(words, className="script-words")]
    )


def same_prompt(kin: Sequence[TextView], against: int, way: Way) -> Component:
    """From which other completion of the prompt to tell the difference."""
    if not kin:
        return html.P(t("No other completion of this prompt was kept."), className="quiet")
    links = [_other(one, one.number == against, way) for one in kin]
    rest = links[OTHERS_SHOWN:]
    more = folded(t("{count} more", count=len(rest)), html.Div(rest, className="chips")) if rest else None
    return html.Div([html.Div(links[:OTHERS_SHOWN], className="chips"), more])


def _other(one: TextView, is_here: bool, way: Way) -> Component:
    reward = "" if one.reward is None else t(", reward {reward}", reward=number(one.reward))
    return dcc.Link(
        t("step {step}, sample {sample}{reward}", step=one.step, sample=one.sample, reward=reward),
        href=way(against="" if is_here else one.number),
        className="chip here" if is_here else "chip",
    )


def difference(text: TextView, other: TextView) -> Component:
    """The older of the two is what it was, the newer what became of it."""
    older, newer = sorted((text, other), key=lambda one: one.number)
    before, after = plainly(older), plainly(newer)
    if before == after:
        return html.P(
            t(
                "Nothing changed from step {older} to step {newer}: each byte is the same.",
                older=older.step,
                newer=newer.step,
            )
        )
    tags = {"gone": html.Del, "new": html.Ins, "same": html.Span}
    parts = [tags[change.kind](shown_pieces(byte_pieces(change.text))) for change in compare(before, after)]
    title = t("From step {older} (struck out) to step {newer} (underlined)", older=older.step, newer=newer.step)
    cut = html.P(t("Only the beginning of both is compared."), className="quiet")
    return html.Div(
        [
            html.P(title, className="muted"),
            html.Pre(parts, className="diff", tabIndex=0),
            cut if is_cut(before, after) else None,
        ]
    )


def prompt_fold(text: TextView) -> Component:
    if not text.prompt:
        return html.P(t("Its prompt was not told."), className="quiet")
    return folded(t("Prompt"), html.Pre(visible(text.prompt, 8_000), className="prompt", tabIndex=0))


def no_texts() -> Component:
    return panel(
        t("No completion has been kept yet"),
        [
            html.P(
                t(
                    "The trainer sends a few completions of each step: the most broken, the longest, "
                    "some at random."
                )
            ),
            html.P(
                woven(
                    "They come with the first generation, unless {code} keeps them at home.",
                    code=html.Code("RLVITALS_TEXTS=0"),
                )
            ),
        ],
    )
