"""What a person does for all alerts of an incident at once: one call of the API for each."""

from __future__ import annotations

from rlvitals_dashboard.api import Api, Refused
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.components import Component, notice, when
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.said import Said, words_of
from rlvitals_dashboard.silence_panel import HUSH_S
from rlvitals_dashboard.words import plural


async def acknowledge_all(api: Api, alerts: str, _said: Said) -> Component:
    for alert in parts_of(alerts):
        await api.acknowledge(alert)
    return notice(t("It has your name."), t("Reminders and escalation of its alerts stop."), tone="good")


async def hush_all(api: Api, alerts: str, _said: Said) -> Component:
    made = [await api.silence_alert(alert, HUSH_S) for alert in parts_of(alerts)]
    words = woven(
        "Nobody is told of {rules} on this run; it ends {moment}.",
        rules=plural(len(made), "rule"),
        moment=when(made[0].ends_at),
    )
    return notice(t("Silenced."), woven("{words} It stands under Control, Silences.", words=words), tone="good")


async def escalate(api: Api, alerts: str, said: Said) -> Component:
    """What the channel was told of already is no failure where there was more to tell."""
    channel, told, refused = words_of(said, "channel"), 0, []
    if not channel:
        return notice(t("Which channel?"), t("Type its name, or choose one."), tone="warning")
    for alert in parts_of(alerts):
        try:
            await api.escalate(alert, channel)
            told += 1
        except Refused as error:
            refused.append(error)
    if not told:
        raise refused[0]
    return notice(
        t("{channel} is told of {alerts}.", channel=channel[:96], alerts=plural(told, "alert")),
        t("How it fares stands under Channels."),
        tone="good",
    )
