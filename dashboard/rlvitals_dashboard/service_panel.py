"""How the service itself fares, as people see it."""

from __future__ import annotations

from datetime import datetime

from dash import dcc, html

from rlvitals.contract.health import DatabaseView, HeartbeatView, PartHealth, QueueView, ServiceView
from rlvitals_dashboard.components import LONGEST_NAME, Component, fact, mark, panel, visible, when
from rlvitals_dashboard.language import counted, phrase, t
from rlvitals_dashboard.line_table import line_table
from rlvitals_dashboard.theme import Look
from rlvitals_dashboard.words import duration, number

PARTS = {
    "database": phrase("Database"),
    "worker": phrase("Judging of rules"),
    "dispatcher": phrase("Delivery of messages"),
}
QUEUES = {
    "judging": phrase("Runs with steps that no rule has seen"),
    "messages": phrase("Messages that are due"),
    "decisions": phrase("Proposals for people to decide"),
}
KINDS = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
LATE_S = 60.0
"""Work that waits so long is worth a look; decisions wait for people."""
SMALL_DISK = 2 << 30
_WELL = Look(tone="good", mark="●", word=phrase("Well"))
_ILL = Look(tone="critical", mark="◆", word=phrase("Not well"))
_NONE = Look(tone="idle", mark="○", word=phrase("Empty"))
_SOME = Look(tone="info", mark="…", word=phrase("Waits"))
_LATE = Look(tone="warning", mark="▲", word=phrase("Waits long"))
_UNITS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def service_panels(told: ServiceView, prefix: str) -> list[Component]:
    return [
        panel(t("The service"), _facts(told)),
        panel(t("Parts"), _parts(told.parts, told.heartbeat)),
        panel(t("Queues"), _queues(told.queues, told.at)),
        panel(t("Received since it started"), _records(told)),
        panel(t("More settings"), _elsewhere(prefix)),
    ]


def size(count: int | None) -> str:
    """Bytes in the largest binary unit that they fill."""
    if count is None:
        return number(None)
    for scale, name in _UNITS:
        if count >= scale:
            return f"{count / scale:.3g} {name}"
    return f"{count:,} B"


def queue_look(queue: QueueView, now: datetime) -> Look:
    if not queue.waiting:
        return _NONE
    late = queue.since is not None and (now - queue.since).total_seconds() > LATE_S
    return _LATE if late and queue.name != "decisions" else _SOME


def _facts(told: ServiceView) -> Component:
    return html.Dl(
        [
            fact(t("Version"), told.version),
            fact(t("Role"), told.role, t("the role of this process")),
            fact(t("Started"), when(told.started_at)),
            *_database(told.database),
            fact(t("Lag"), number(None) if told.lag_s is None else duration(told.lag_s), t("of the newest step")),
        ],
        className="facts",
    )


def _database(told: DatabaseView) -> list[Component]:
    facts = [
        fact(t("Database"), KINDS.get(told.kind, told.kind)),
        fact(t("Database size"), size(told.size_bytes)),
        fact(t("Runs"), f"{told.runs:,}"),
    ]
    if told.free_bytes is None:
        return facts
    low = (
        [" ", html.Span(f"▲ {t('little')}", className="badge tone-warning")]
        if told.free_bytes < SMALL_DISK
        else []
    )
    return [*facts, fact(t("Disk free"), [size(told.free_bytes), *low])]


def _parts(parts: tuple[PartHealth, ...], heartbeat: HeartbeatView | None) -> Component:
    rows = [_part(part) for part in parts]
    names = (t("State"), t("Part"), t("What it says"))
    return [line_table(t("Parts"), names, rows), html.P(_watcher(heartbeat), className="quiet")]


def _part(part: PartHealth) -> Component:
    look = _WELL if part.well else _ILL
    name = PARTS.get(part.name)
    cells = [html.Td(mark(look, words=t(look.word))), html.Td(html.B(t(name) if name else visible(part.name, 40)))]
    return html.Tr([*cells, html.Td(visible(part.words, 300), className="detail")])


def _watcher(heartbeat: HeartbeatView | None) -> Component:
    if heartbeat is None:
        return t("No outside watcher is told that the service lives: RLVITALS_HEARTBEAT_URL names one.")
    host = html.Code(visible(heartbeat.host, LONGEST_NAME))
    taken = when(heartbeat.delivered_at) if heartbeat.delivered_at else t("never")
    return [t("An outside watcher is told that it lives:"), " ", host, ", ", t("last taken"), " ", taken]


def _queues(queues: tuple[QueueView, ...], now: datetime) -> Component:
    return line_table(
        t("Queues"),
        (t("State"), t("What"), t("How many"), t("The oldest since")),
        [_queue(q, now) for q in queues],
    )


def _queue(queue: QueueView, now: datetime) -> Component:
    look, name = queue_look(queue, now), QUEUES.get(queue.name)
    return html.Tr(
        [
            html.Td(mark(look, words=t(look.word))),
            html.Td(t(name) if name else visible(queue.name, 40)),
            html.Td(f"{queue.waiting:,}", className="numeric"),
            html.Td(when(queue.since) if queue.since else "–"),
        ]
    )


def _records(told: ServiceView) -> Component:
    stored = html.P(counted(told.stored, "{count} record stored.", "{count} records stored."))
    if not told.dropped:
        return [stored, html.P(t("Nothing was dropped."), className="quiet")]
    rows = [
        html.Tr([html.Td(html.Code(visible(reason, LONGEST_NAME))), html.Td(f"{count:,}", className="numeric")])
        for reason, count in told.dropped.items()
    ]
    return [stored, line_table(t("What was dropped"), (t("Dropped because"), t("Records")), rows)]


def _elsewhere(prefix: str) -> Component:
    ways = {
        "channels": t("Channels: who is told of alerts, with a test"),
        "control/policies": t("Policies: who may steer which runs"),
        "rules/edit": t("Rules: what raises an alert, edited and tried"),
        "control/audit": t("Audit: who did what"),
    }
    return html.Ul([html.Li(dcc.Link(words, href=f"{prefix}{place}")) for place, words in ways.items()])
