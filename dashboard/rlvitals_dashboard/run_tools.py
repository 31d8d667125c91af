"""What a person turns on a run's charts: search, attempt, scale, smoothing, the step looked at, keys. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from rlvitals.contract.view import AttemptView, RunView
from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.run_view import LONGEST_WORDS, View

SCALES = (("", phrase("auto")), ("linear", phrase("linear")), ("log", phrase("log")))
SMOOTHS = (
    ("", phrase("off")),
    ("ema-0.6", phrase("average 0.6")),
    ("ema-0.9", phrase("average 0.9")),
    ("ema-0.98", phrase("average 0.98")),
    ("median-5", phrase("median of 5")),
    ("median-21", phrase("median of 21")),
)
MOST_ATTEMPTS = 8

KEYS = (
    ("←  →", phrase("look at the step before, after (with Shift: ten)")),
    ("f", phrase("follow the newest step again")),
    ("space", phrase("hold the charts still, or go on; alerts stay live")),
    ("g, l", phrase("scale of the values: auto, linear, log")),
    ("s", phrase("smoothing: off, averages, medians")),
    ("/", phrase("search for a metric")),
    ("Esc", phrase("back to the whole run")),
    ("?", phrase("these keys")),
)


def search_box(view: View) -> Component:
    box = dcc.Input(
        id="find",
        type="search",
        value=view.find,
        placeholder=t("Find a metric"),
        maxLength=LONGEST_WORDS,
        debounce=0.3,
        autoComplete="off",
    )
    return html.Label([html.Span(t("Find a metric"), className="unseen"), box], className="find")


def choices(run: RunView, view: View) -> list[Component]:
    """Each opens on a click and says what is chosen."""
    attempts = sorted(run.attempts, key=lambda a: a.ordinal, reverse=True)
    offered = [
        ("", t("newest, those before behind it")),
        *((a.id, attempt_words(a)) for a in attempts[:MOST_ATTEMPTS]),
    ]
    return [
        _choice("attempt", t("Attempt"), offered, view.attempt) if len(attempts) > 1 else None,
        _choice("scale", t("Scale"), [(key, t(word)) for key, word in SCALES], view.scale),
        _choice("smooth", t("Smoothing"), [(key, t(word)) for key, word in SMOOTHS], view.smooth),
    ]


def attempt_words(attempt: AttemptView) -> str:
    if attempt.first_step is None or attempt.last_step is None:
        return t("Attempt {number}: no step yet", number=attempt.ordinal)
    return t(
        "Attempt {number}: steps {first} to {last}",
        number=attempt.ordinal,
        first=attempt.first_step,
        last=attempt.last_step,
    )


def _choice(what: str, label: str, offered: Sequence[tuple[str, str]], chosen: str) -> Component:
    said = next((word for key, word in offered if key == chosen), chosen[:40])
    buttons = [
        html.Button(
            word,
            id={"type": "pick", "what": what, "value": key},
            className="button quiet",
            **aria(pressed=str(key == chosen).lower()),
        )
        for key, word in offered
    ]
    summary = html.Summary([html.Span(f"{label}: ", className="muted"), said], className="button quiet")
    return html.Details([summary, html.Div(buttons, className="offered")], className=f"choice {what}")


def zoom_words(view: View) -> list[Component]:
    if view.first is None or view.last is None:
        return [html.Span(t("Drag across a chart to zoom all of them."), className="muted hint")]
    words = html.Span(t("Steps {first} to {last}", first=view.first, last=view.last), className="badge tone-info")
    return [words, html.Button(t("Back to the whole run"), id="unzoom", className="button quiet")]


def scrubber() -> Component:
    """The browser fills it: only there it is known what is drawn."""
    said: dict[str, Any] = {
        "data-newest": t("Newest step"),
        "data-at": t("Step {step}"),
        "data-label": t("The step that is looked at"),
        "data-missing": t("missing"),
    }
    hold = html.Button(
        [html.Span(t("Hold"), className="hold"), html.Span(t("Go on"), className="go")],
        id="hold",
        className="button quiet",
    )
    follow = html.Button(t("Follow"), id="follow", className="button quiet")
    keys = html.Button("?", id="show-keys", className="button quiet", title=t("Keys"), **aria(label=t("Keys")))
    return html.Div([html.Div(id="scrub", **said), follow, hold, keys, key_help()], className="scrubber")


def key_help() -> Component:
    rows = [html.Div([html.Dt(html.Kbd(key)), html.Dd(t(words))]) for key, words in KEYS]
    shut = html.Button(t("Close"), id="shut-keys", className="button quiet")
    return html.Dialog([html.H2(t("Keys")), html.Dl(rows), shut], id="keys", **aria(label=t("Keys")))
