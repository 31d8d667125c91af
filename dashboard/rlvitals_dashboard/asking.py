"""Buttons that ask once: the first press says what will happen, the second does it. No script is needed.

A deed is ``{"type": "do", "deed": …, "subject": …}``; what a person types beside it is ``{"type": "say", …}`` with
the same deed, and the same subject or its first part, and a name. `deeds` carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote, unquote

from dash import dcc, html

from rlvitals_dashboard.components import Component
from rlvitals_dashboard.language import t

LONGEST_WORDS = 500
FOR_READERS = frozenset({"check-audit", "end-session", "end-sessions", "show-sends"})
"""Deeds that who may only read may do, too; other ones they are not shown (assets/vitals.css)."""


def subject_of(*parts: str) -> str:
    """Without a space, since the browser takes an id with one for two; `parts_of` gives them back."""
    return ":".join(quote(part, safe="") for part in parts)


def parts_of(subject: str) -> list[str]:
    return [unquote(part) for part in subject.split(":")]


def ask_once(label: Component, words: Component, act: Component, *, tone: str = "") -> Component:
    """``words`` say what will happen; ``act`` is the button that does it, with its fields."""
    return html.Details(
        [
            html.Summary(
                [html.Span(label, className="shut"), html.Span(t("Back"), className="back")],
                className=f"button {tone}".strip(),
            ),
            html.Div([html.P(words) if words else None, act], className="asked"),
        ],
        className="asking deed",
    )


def do(label: str, deed: str, subject: str, *, tone: str = "primary") -> Component:
    """The button that does it."""
    kind = "button deed reader" if deed in FOR_READERS else "button deed"
    return html.Button(
        label, id={"type": "do", "deed": deed, "subject": subject}, className=f"{kind} {tone}".strip()
    )


def say(
    deed: str,
    subject: str,
    name: str,
    label: str,
    *,
    value: str = "",
    holder: str = "",
    choices: Sequence[str] = (),
    kind: Literal["text", "password"] = "text",
) -> Component:
    """A line of text beside a deed; ``choices`` are offered, and others can be typed."""
    offered = f"choices-{deed}-{name}" if choices else None
    field = dcc.Input(
        id=_field(deed, subject, name),
        type=kind,
        value=value,
        placeholder=holder,
        maxLength=LONGEST_WORDS,
        list=offered,
        autoComplete="off",
    )
    known = html.Datalist([html.Option(value=choice) for choice in choices], id=offered) if offered else None
    return html.Label([html.Span(label), field, known], className="argument")


def say_number(
    deed: str,
    subject: str,
    label: str,
    value: float | None,
    *,
    low: float | None = None,
    high: float | None = None,
    hint: str = "",
    name: str = "argument",
) -> Component:
    """A number beside a deed."""
    field = dcc.Input(
        id=_field(deed, subject, name),
        type="number",
        value=value,
        min=low,
        max=high,
        step="any",
        debounce=False,
        className="number",
    )
    parts = [html.Span(label), field, html.Span(hint, className="muted") if hint else None]
    return html.Label(parts, className="argument")


def say_where(deed: str, subject: str) -> Component:
    """Tells, by the name ``view``, what stands in the address when the deed is done (assets/copying.js)."""
    return dcc.Input(id=_field(deed, subject, "view"), type="hidden", value="")


def _field(deed: str, subject: str, name: str) -> dict[str, Any]:
    return {"type": "say", "deed": deed, "subject": subject, "name": name}
