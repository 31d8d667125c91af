"""What a person does for all alerts of an incident at once: one call of the API for each."""

from __future__ import annotations

from rlvitals_dashboard.api import Api, Refused
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.components import Component, notice, when
from rlvitals_dashboard.said import Said, words_of
from rlvitals_dashboard.silence_panel import HUSH_S
from rlvitals_dashboard.words import plural


async def acknowledge_all(api: Api, alerts: str, _said: Said) -> Component:
    for alert in parts_of(alerts):
        await api.acknowledge(alert)
    return notice("It has your name.", "Reminders and escalation of its alerts stop.", tone="good")


async def hush_all(api: Api, alerts: str, _said: Said) -> Component:
    made = [await api.silence_alert(alert, HUSH_S) for alert in parts_of(alerts)]
    words = [f"Nobody is told of {plural(len(made), 'rule')} on this run; it ends ", when(made[0].ends_at), "."]
    return notice("Silenced.", [*words, " It stands under Control, Silences."], tone="good")


async def escalate(api: Api, alerts: str, said: Said) -> Component:
    """What the channel was told of already is no failure where there was more to tell."""
    channel, told, refused = words_of(said, "channel"), 0, []
    if not channel:
        return notice("Which channel?", "Type its name, or choose one.", tone="warning")
    for alert in parts_of(alerts):
        try:
            await api.escalate(alert, channel)
            told += 1
        except Refused as error:
            refused.append(error)
    if not told:
        raise refused[0]
    return notice(
        f"{channel[:96]} is told of {plural(told, 'alert')}.", "How it fares stands under Channels.", tone="good"
    )
