"""A completion token by token: each can be pointed at, and tells its id, its bytes and what was measured of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from dash import dcc, html

from rlvitals.contract.report import TokenDetail
from rlvitals.contract.view import TextView
from rlvitals_dashboard import token_heat
from rlvitals_dashboard.components import Component, aria
from rlvitals_dashboard.language import t
from rlvitals_dashboard.spelling import Cluster, Token, byte_pieces, spell
from rlvitals_dashboard.token_heat import Heat
from rlvitals_dashboard.words import Piece, number

TOKENS_SHOWN = 1_500
"""Of one completion at a time: a browser grows slow with more."""
_PIECE_BYTES = 24
_TOKENS_NAMED = 6


def shown_pieces(pieces: Iterable[Piece]) -> list[Component]:
    return [
        html.Mark(piece.shown, className="odd", title=piece.name) if piece.name else piece.shown
        for piece in pieces
    ]


def token_view(text: TextView, heat: Heat | None, first: int) -> Component:
    """The tokens from ``first`` on, at most `TOKENS_SHOWN`; arrow keys walk through them, see assets/texts.js."""
    detail = text.tokens or TokenDetail()
    last = first + TOKENS_SHOWN
    clusters = (c for c in spell(text.token_ids, detail) if c.tokens[0].place >= first)
    shown = list(islice((c for c in clusters if c.tokens[0].place < last), TOKENS_SHOWN))
    spans = [_span(cluster, detail, heat) for cluster in shown]
    return html.Div(
        [
            html.Div(
                spans, className="tokens", tabIndex=0, role="region", **aria(label=t("Tokens of the completion"))
            ),
            html.P(t("Point at a token, or walk with the arrow keys."), id="token-told", role="status"),
        ]
    )


def _span(cluster: Cluster, detail: TokenDetail, heat: Heat | None) -> Component:
    classes = ["tok"]
    if heat is not None:
        values = [token_heat.value_at(heat, detail, token.place) for token in cluster.tokens]
        classes.append(token_heat.look(heat, token_heat.worst(heat, values)))
    told = "\n".join(told_of(token, detail) for token in cluster.tokens[:_TOKENS_NAMED])
    rest = len(cluster.tokens) - _TOKENS_NAMED
    title = t("{told}\nand {rest} more tokens of the same character", told=told, rest=rest) if rest > 0 else told
    return html.Span(shown_pieces(cluster.pieces), className=" ".join(classes), title=title)


def told_of(token: Token, detail: TokenDetail) -> str:
    """All that is known of a token, in one line."""
    return ", ".join(_facts(token, detail))


def _facts(token: Token, detail: TokenDetail) -> Iterator[str]:
    yield t("token {place}", place=token.place)
    yield t("id {token_id}", token_id=str(token.token_id))
    if token.kind:
        yield token.kind.replace("_", " ")
    if token.piece is not None:
        shown = "".join(piece.shown for piece in byte_pieces(token.piece.decode("utf-8", "surrogateescape")))
        yield f"“{shown[:40]}”".replace("\n", "⏎").replace("\t", "⇥")
        cut = " …" if len(token.piece) > _PIECE_BYTES else ""
        yield t("bytes {bytes}{cut}", bytes=token.piece[:_PIECE_BYTES].hex(" ").upper(), cut=cut)
    for name, told in detail.scores.items():
        yield f"{name} {number(told[token.place] if token.place < len(told) else None)}"
    for heat in token_heat.offered(detail):
        if len(heat.needs) > 1:
            value = token_heat.value_at(heat, detail, token.place)
            yield f"{t(heat.title)} {number(value)} {heat.unit}".strip()


def heat_legend(heat: Heat) -> Component:
    low, *_, high = heat.bounds
    steps = [html.Span("", className=f"tok swatch heat-{level}") for level in range(5)]
    marks = [
        html.Span(word, className=f"tok {look}")
        for look, word in (("nan", "NaN"), ("pos-inf", "+Inf"), ("neg-inf", "−Inf"), ("missing", t("missing")))
    ]
    cold: list[Component] = [html.Span("", className="tok swatch cold-4"), t("below 0")] if _turns(heat) else []
    ends = [
        html.Span(t("under {low}", low=number(low))),
        *steps,
        html.Span(t("{value} and more", value=f"{number(high)} {heat.unit}".strip())),
    ]
    return html.Div([*ends, *cold, *marks], className="legend")


def _turns(heat: Heat) -> bool:
    return heat.key in ("advantage", "ratio")


def heat_choice(detail: TokenDetail | None, chosen: Heat | None, hrefs: dict[str, str]) -> Component:
    """Nothing where no score was told. ``hrefs`` by key, "" for none."""
    heats = token_heat.offered(detail)
    if not heats:
        return None
    ways: list[tuple[str, Any]] = [(t("Plain"), ""), *((t(heat.title), heat.key) for heat in heats)]
    here = chosen.key if chosen is not None else ""
    links = [
        dcc.Link(title, href=hrefs[key], className="chip here" if key == here else "chip") for title, key in ways
    ]
    return html.Div([html.Span(t("Heat"), className="muted"), *links], className="chips")
