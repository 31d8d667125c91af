"""What stands on the page of a run's incidents at one moment, block by block."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dash import html

from rlvitals.contract.incident import IncidentStory, IncidentView
from rlvitals.contract.view import RunView
from rlvitals_dashboard import incident_list as lines
from rlvitals_dashboard import incident_panel as parts
from rlvitals_dashboard.api import Api, Forbidden, NotFound
from rlvitals_dashboard.components import Component, panel
from rlvitals_dashboard.heart import Block, Query
from rlvitals_dashboard.language import t
from rlvitals_dashboard.live import fingerprint
from rlvitals_dashboard.swimlane import charts_way
from rlvitals_dashboard.words import plural

BESIDE = ("list", "deeds", "advice", "files")
MAIN = ("head", "onset", "texts", "alerts", "actions")
BLOCKS = ("summary", *BESIDE, *MAIN)
LONGEST = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``story`` is the chosen incident's: the one that was asked for, else the most urgent."""

    run: RunView
    attempt: str
    asked: str
    found: Sequence[IncidentView]
    channels: Sequence[str]
    story: IncidentStory | None = None

    @classmethod
    async def take(cls, api: Api, query: Query) -> Snapshot:
        name, attempt, asked = (query.get(key, "")[:LONGEST] for key in ("run", "attempt", "cause"))
        run, found, channels = await asyncio.gather(api.run(name), api.incidents(name, attempt), _channels(api))
        now = cls(run=run, attempt=attempt, asked=asked, found=found, channels=channels)
        cause = asked or lines.most_urgent(found)
        if cause not in {one.cause for one in found}:
            return now
        try:
            return replace(now, story=await api.incident(name, cause, attempt))
        except NotFound:
            return now  # it turned into another between the two questions; the next beat tells

    def blocks(self, prefix: str) -> dict[str, Block]:
        chosen = self.story.incident.cause if self.story else self.asked
        made = {
            "summary": Block(stamp=fingerprint(self.summary), make=lambda: self.summary),
            "list": Block(stamp=fingerprint(self.found, chosen), make=lambda: self._list(prefix, chosen)),
        }
        return made | (self._story(self.story, prefix) if self.story else self._without(prefix))

    @property
    def summary(self) -> str:
        count = sum(one.is_open for one in self.found)
        over = len(self.found) - count
        return ", ".join([plural(count, "open incident"), *([t("{count} over", count=over)] if over else [])])

    def _list(self, prefix: str, chosen: str) -> Component:
        if not self.found:
            return None
        links = lines.incident_links(self.found, prefix, chosen, self.attempt)
        return panel(t("Incidents"), links, count=t("in the order of onset"))

    def _without(self, prefix: str) -> dict[str, Block]:
        def say() -> Component:
            if self.asked:
                return lines.gone(self.asked, self.run.id, prefix)
            words = t("No alert of this attempt has fired. When some do, what they mean together stands here.")
            return panel(t("Nothing went wrong"), html.P(words, className="quiet"))

        none = {name: Block(stamp=0, make=lambda: None) for name in BLOCKS[2:]}
        return none | {"head": Block(stamp=fingerprint(self.asked), make=say)}

    def _story(self, story: IncidentStory, prefix: str) -> dict[str, Block]:
        one, way = story.incident, charts_way(prefix, story)
        quiet = replace(one, gpu_hours=None)
        marks = (story.axis, story.alerts, story.checkpoints, [(c.id, c.step) for c in story.commands])
        return {
            "head": Block(stamp=fingerprint(one), make=lambda: parts.head(story)),
            "deeds": Block(
                stamp=fingerprint(
                    one.cause, [(a.id, a.state, a.acknowledged_by) for a in story.alerts], self.channels
                ),
                make=lambda: panel(t("Look after it"), parts.deeds(story, self.channels)),
            ),
            "onset": Block(
                stamp=fingerprint(quiet, marks),
                make=lambda: panel(t("Order of onset"), parts.evidence(story, way), key="onset"),
            ),
            "advice": Block(stamp=fingerprint(quiet), make=lambda: panel(t("What to do"), parts.advice(story))),
            "files": Block(
                stamp=fingerprint(one.cause, one.attempt),
                make=lambda: panel(t("Post-mortem"), parts.exports(story)),
            ),
            "texts": Block(
                stamp=fingerprint(story.texts, story.named),
                make=lambda: panel(
                    t("Completions of its onset"), parts.guilty(story, prefix), count=t("guiltiest first")
                ),
            ),
            "alerts": Block(
                stamp=fingerprint(story.alerts), make=lambda: panel(t("Its alerts"), parts.alerts(story))
            ),
            "actions": Block(
                stamp=fingerprint(story.commands),
                make=lambda: panel(t("What was done"), parts.done(story, prefix)),
            ),
        }


async def _channels(api: Api) -> list[str]:
    """None for who came by a shared link: they see the run, and not whom its alerts go to."""
    try:
        return [channel.name for channel in await api.channels()]
    except Forbidden:
        return []
