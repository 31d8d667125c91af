"""Channels and what became of messages, as people see them. Addresses are secrets: only the host is shown."""

from __future__ import annotations

from collections.abc import Sequence

from dash import html

from rlvitals.contract.view import ChannelView, DeliveryView
from rlvitals_dashboard.asking import do
from rlvitals_dashboard.components import LONGEST_NAME, Component, aria, fact, mark, visible, when
from rlvitals_dashboard.theme import DELIVERY_STATES, SEVERITIES, Look
from rlvitals_dashboard.words import plural

UNKNOWN = Look(tone="idle", mark="?", word="")
_WELL = Look(tone="good", mark="●", word="Delivers")
_NEW = Look(tone="idle", mark="○", word="Nothing sent yet")
_WAITS = Look(tone="info", mark="…", word="Messages wait")
_FAILS = Look(tone="critical", mark="◆", word="Messages were given up")


def channel_cards(channels: Sequence[ChannelView]) -> Component:
    if not channels:
        return html.P(
            [
                "No channel yet: alerts stand on these pages and reach nobody's chat. A file that ",
                html.Code("RLVITALS_CHANNELS"),
                " names lists them.",
            ],
            className="quiet",
        )
    return html.Div([_card(channel) for channel in channels], className="channel-cards")


def _card(channel: ChannelView) -> Component:
    look = standing(channel)
    least = SEVERITIES[channel.severity].word.lower()
    told = [f"from {least} on", "and when it is over" if channel.send_resolved else "not when it is over"]
    signed = ["signed"] if channel.signed else []
    return html.Article(
        [
            html.Header([html.H3(visible(channel.name, LONGEST_NAME)), mark(look)]),
            html.P([*visible(channel.kind, 40), " at ", html.Code(visible(channel.host or "–", LONGEST_NAME))]),
            html.P(", ".join([*told, *signed]), className="muted"),
            html.Dl(
                [
                    fact("Waiting", f"{channel.waiting:,}"),
                    fact("Delivered", f"{channel.delivered:,}"),
                    fact("Given up", f"{channel.failed:,}"),
                ],
                className="facts",
            ),
            html.P(["Last answer: ", html.Q(visible(channel.answer, 300))], className="answer")
            if channel.answer
            else None,
            html.Div([do("Send a test", "test-channel", channel.name, tone="")], className="buttons"),
        ],
        className=f"channel tone-{look.tone}",
    )


def standing(channel: ChannelView) -> Look:
    """The worst of what is known of it."""
    if channel.failed:
        return _FAILS
    if channel.waiting:
        return _WAITS
    return _WELL if channel.delivered else _NEW


def delivery_list(deliveries: Sequence[DeliveryView]) -> Component:
    """Newest first."""
    if not deliveries:
        return html.P("No message yet.", className="quiet")
    names = ("State", "Channel", "Attempts", "When", "Answer")
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in names]))
    return html.Div(
        html.Table([head, html.Tbody([_delivery(d) for d in deliveries])], className="lines"),
        className="scroll",
        tabIndex=0,
        role="region",
        **aria(label="Messages"),
    )


def _delivery(delivery: DeliveryView) -> Component:
    look = DELIVERY_STATES.get(delivery.state, UNKNOWN)
    moment: list[Component] = []
    if delivery.delivered_at is not None:
        moment = [when(delivery.delivered_at)]
    elif delivery.state == "waiting":
        moment = ["due ", when(delivery.next_at)]
    return html.Tr(
        [
            html.Td(mark(look, words="" if look.word else delivery.state)),
            html.Td(visible(delivery.channel, LONGEST_NAME)),
            html.Td(f"{delivery.attempts:,}", className="numeric"),
            html.Td(moment),
            html.Td(visible(delivery.answer, 300), className="detail"),
        ]
    )


def channel_summary(channels: Sequence[ChannelView]) -> str:
    ill = sum(1 for channel in channels if channel.failed)
    said = plural(len(channels), "channel")
    return f"{said}, {ill} of them gave up a message" if ill else said
