"""Channels and what became of messages, as people see them. Addresses are secrets: only the host is shown."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from dash import dcc, html

from rlvitals.contract.alert import Severity
from rlvitals.contract.channelbook import ChannelBookView
from rlvitals.contract.view import ChannelView, DeliveryView, SendView
from rlvitals_dashboard.asking import ask_once, do, say
from rlvitals_dashboard.components import LONGEST_NAME, Component, fact, folded, mark, panel, visible, when
from rlvitals_dashboard.language import phrase, t, woven
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.problem_banner import SHOWN_MAX
from rlvitals_dashboard.theme import DELIVERY_STATES, SEVERITIES, Look
from rlvitals_dashboard.words import plural

KINDS = ("slack", "discord", "feishu", "dingtalk", "wecom", "telegram", "teams", "email", "webhook")
OPTIONS = {"telegram": ("chat_id", "message_thread_id"), "email": ("from", "to", "user")}
"""What only one kind asks for."""
SEVERITY_NAMES = tuple(severity.value for severity in Severity)
VERDICTS_OF_SENDS = {
    "delivered": phrase("taken"),
    "retry": phrase("to be tried again"),
    "permanent": phrase("refused for good"),
}
PURPOSES = {"reminder": phrase("reminder"), "escalation": phrase("escalation")}
CHANGES_TOLD = {"firing": phrase("fires"), "resolved": phrase("is over")}
UNKNOWN = Look(tone="idle", mark="?", word="")
_WELL = Look(tone="good", mark="●", word="Delivers")
_NEW = Look(tone="idle", mark="○", word="Nothing sent yet")
_WAITS = Look(tone="info", mark="…", word="Messages wait")
_FAILS = Look(tone="critical", mark="◆", word="Messages were given up")


def channel_cards(channels: Sequence[ChannelView]) -> Component:
    if not channels:
        return html.P(
            woven(
                "No channel yet: alerts stand on these pages and reach nobody's chat. A file that "
                "{variable} names lists them.",
                variable=html.Code("RLVITALS_CHANNELS"),
            ),
            className="quiet",
        )
    return html.Div([_card(channel) for channel in channels], className="channel-cards")


def _card(channel: ChannelView) -> Component:
    look = standing(channel)
    least = SEVERITIES[channel.severity].said.lower()
    told = [
        t("from {least} on", least=least),
        t("and when it is over") if channel.send_resolved else t("not when it is over"),
    ]
    signed = [t("signed")] if channel.signed else []
    return html.Article(
        [
            html.Header([html.H3(visible(channel.name, LONGEST_NAME)), mark(look)]),
            html.P(
                woven(
                    "{kind} at {host}",
                    kind=visible(channel.kind, 40),
                    host=html.Code(visible(channel.host or "–", LONGEST_NAME)),
                )
            ),
            html.P(", ".join([*told, *signed]), className="muted"),
            html.Dl(
                [
                    fact(t("Waiting"), f"{channel.waiting:,}"),
                    fact(t("Delivered"), f"{channel.delivered:,}"),
                    fact(t("Given up"), f"{channel.failed:,}"),
                    fact(t("Left out"), f"{channel.dropped:,}", t("no longer to be said when its time came")),
                ],
                className="facts",
            ),
            html.P(woven("Last answer: {answer}", answer=html.Q(visible(channel.answer, 300))), className="answer")
            if channel.answer
            else None,
            html.Div(
                [do(t("Send a test"), "test-channel", channel.name, tone=""), _removal(channel)],
                className="buttons",
            ),
        ],
        className=f"channel tone-{look.tone}",
    )


def _removal(channel: ChannelView) -> Component:
    if not channel.made:
        return html.Span(t("from the operator's file"), className="muted expiry")
    words = t("Alerts no longer go there, and what still waited for it is dropped. Administrators can.")
    return ask_once(t("Remove"), words, do(t("Yes, remove it"), "remove-channel", channel.name, tone="danger"))


def new_channel() -> Component:
    """Its address is never shown again."""
    about = [
        say("make-channel", "", "name", t("Name")),
        say("make-channel", "", "kind", t("Kind"), holder="slack, discord, feishu, …", choices=KINDS),
        say("make-channel", "", "url", t("Address"), holder="https://…, smtps://host:465"),
        say("make-channel", "", "secret", t("Secret, if it has one"), kind="password"),
        say("make-channel", "", "severity", t("From which severity on"), value="warning", choices=SEVERITY_NAMES),
        say("make-channel", "", "match", t("Only alerts that fit"), holder="project=math-*, rule!=kl_*"),
        say("make-channel", "", "language", t("Language"), value="en", choices=("en", "zh")),
        folded(
            t("For Telegram"),
            [
                say("make-channel", "", "chat_id", t("Chat"), holder="-1001234567890, @channel"),
                say("make-channel", "", "message_thread_id", t("Topic, if it has some"), holder="42"),
            ],
        ),
        folded(
            t("For mail"),
            [
                say("make-channel", "", "from", t("From"), holder="RL Vitals <vitals@mail.example>"),
                say("make-channel", "", "to", t("To"), holder="team@mail.example, ann@mail.example"),
                say("make-channel", "", "user", t("User, whose password is the secret")),
            ],
        ),
        do(t("Yes, add it"), "make-channel", ""),
    ]
    words = t(
        "From then on alerts go there as well. Neither address nor secret is shown again. Administrators can."
    )
    return ask_once(t("Add a channel"), words, html.Div(about), tone="primary")


def problem_list(book: ChannelBookView) -> Component:
    """What the banner of every page has no room for; nothing where it says all."""
    rest = book.problems[SHOWN_MAX:]
    if not rest:
        return None
    lines = [html.Li(html.Code(visible(problem, 300))) for problem in rest]
    return panel(t("More that is not in force as written"), html.Ul(lines, className="reasons"))


def send_list(sends: Sequence[SendView]) -> Component:
    rows = [
        html.Li(
            [
                html.B(f"{send.number:,}. "),
                when(send.at),
                f", {_verdict(send)}: ",
                html.Q(visible(send.answer, 400)),
            ]
        )
        for send in sends
    ]
    return (
        html.Ol(rows, className="sends") if rows else html.P(t("Nothing was sent for it yet."), className="quiet")
    )


def _verdict(send: SendView) -> str:
    known = VERDICTS_OF_SENDS.get(send.verdict)
    return t(known) if known else send.verdict


def standing(channel: ChannelView) -> Look:
    """The worst of what is known of it."""
    if channel.failed:
        return _FAILS
    if channel.waiting:
        return _WAITS
    return _WELL if channel.delivered else _NEW


def delivery_list(deliveries: Sequence[DeliveryView], prefix: str) -> Component:
    """Newest first."""
    if not deliveries:
        return html.P(t("No message yet."), className="quiet")
    names = (t("State"), t("Of what"), t("Channel"), t("Attempts"), t("When"), t("Answer"))
    return line_table(t("Messages"), names, [_delivery(d, prefix) for d in deliveries])


def _delivery(delivery: DeliveryView, prefix: str) -> Component:
    look = DELIVERY_STATES.get(delivery.state, UNKNOWN)
    return html.Tr(
        [
            html.Td(mark(look, words="" if look.word else delivery.state)),
            html.Td(_subject(delivery, prefix)),
            html.Td([*visible(delivery.channel, LONGEST_NAME), _purpose(delivery)]),
            html.Td(_attempts(delivery)),
            html.Td(_moment(delivery)),
            html.Td(visible(delivery.answer, 300), className="detail"),
        ]
    )


def _subject(delivery: DeliveryView, prefix: str) -> list[Component]:
    """The alert, whether it began or ended, and the run."""
    if not delivery.run:
        return []
    known = CHANGES_TOLD.get(delivery.change)
    change = t(known) if known else delivery.change
    run = dcc.Link(
        visible(delivery.run, LONGEST_NAME), href=f"{prefix}run/{quote(delivery.run, safe='')}", className="muted"
    )
    return [html.B(visible(delivery.rule, LONGEST_NAME)), " ", *visible(change, 40), html.Br(), run]


def _moment(delivery: DeliveryView) -> list[Component]:
    """What is ready may still wait for its turn: the channel's pace, or the next message of its run."""
    if delivery.delivered_at is not None:
        return [when(delivery.delivered_at)]
    return woven("ready {moment}", moment=when(delivery.next_at)) if delivery.state == "waiting" else []


def _purpose(delivery: DeliveryView) -> Component:
    word = PURPOSES.get(delivery.purpose)
    return html.Span(f", {t(word)}", className="muted") if word else None


def _attempts(delivery: DeliveryView) -> Component:
    count = plural(delivery.attempts, "attempt")
    return do(count, "show-sends", delivery.id, tone="quiet") if delivery.message_id else count


def channel_summary(channels: Sequence[ChannelView]) -> str:
    ill = sum(1 for channel in channels if channel.failed)
    said = plural(len(channels), "channel")
    return t("{said}, {ill} of them gave up a message", said=said, ill=ill) if ill else said
