"""Language and colours, chosen in the top bar; the browser keeps the choice (assets/display.js)."""

from __future__ import annotations

import json
from typing import Any

from dash import html

from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.language import Language, language, phrase, t

NAMES = {Language.ENGLISH: "English", Language.CHINESE: "中文"}
"""Each in its own language, so that whoever reads no other finds it."""
COLOURS = {"": phrase("Usual colours"), "safe": phrase("Colour-blind safe")}

BROWSER_PHRASES = (
    phrase("One file at a time"),
    phrase("A tracker's folder has its log in one file: choose that, or pack the folder's file."),
    phrase("Sending {file} …"),
    phrase("The service reads {file} …"),
    phrase("The service does not answer"),
    phrase("Nothing was imported. Try again."),
    phrase("The service did not answer. Look whether it was done before you try again."),
)
"""What the browser's own scripts say; a test holds them against the scripts."""


def display_choice() -> Component:
    names = [_choice(name, {"data-language": one.value, "lang": one.value}) for one, name in NAMES.items()]
    colours = [_choice(t(name), {"data-colours": key}) for key, name in COLOURS.items()]
    title = t("Language and colours")
    return html.Details(
        [
            html.Summary("Aa", className="icon-button", title=title, **aria(label=title)),
            html.Div(
                [
                    html.Div(names, role="group", **aria(label=t("Language"))),
                    html.Div(colours, role="group", **aria(label=t("Colours"))),
                ],
                className="choices",
            ),
        ],
        className="display-choice",
    )


def browser_phrases() -> Component:
    """For the scripts: what they say in the visitor's language, by the English."""
    said = {english: t(english) for english in BROWSER_PHRASES} if language.get() is not Language.ENGLISH else {}
    told: dict[str, Any] = {"data-phrases": json.dumps(said, ensure_ascii=False)}
    return html.Div(id="phrases", hidden=True, **told)


def _choice(name: str, told: dict[str, Any]) -> Component:
    return html.Button(name, className="button quiet", **told, **aria(pressed="false"))
