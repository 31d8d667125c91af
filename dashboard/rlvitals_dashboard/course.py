"""The way of a command, station by station, down to the ranks: which it has passed, and where it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rlvitals.contract.command import CommandState
from rlvitals.contract.report import Json
from rlvitals.contract.view import CommandView
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.words import plural

_ENDS_WITHOUT = {
    CommandState.REFUSED: phrase("Refused by the trainer or on its behalf"),
    CommandState.DENIED: phrase("Denied"),
    CommandState.EXPIRED: phrase("Expired before it was done"),
    CommandState.OBSERVED: phrase("Only observed: nobody was asked and nothing was done"),
}
_NOBODY = ("rule:", "policy:")
_HANDED = frozenset({CommandState.DELIVERED, CommandState.APPLIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """``ill`` where the way ends badly."""

    title: str
    passed: bool
    who: str = ""
    at: datetime | None = None
    note: str = ""
    ill: bool = False


def course(command: CommandView, ranks: int | None) -> tuple[Station, ...]:
    """``ranks`` is how many the job has; None where it did not tell."""
    return tuple(_stations(command, ranks))


def _stations(command: CommandView, ranks: int | None) -> Iterator[Station]:
    step = "" if command.asked_step is None else t("at step {step}", step=command.asked_step)
    asked = t("Proposed") if command.who.startswith(_NOBODY) else t("Asked for")
    yield Station(title=asked, passed=True, who=command.who, at=command.created_at, note=step)
    for voice in command.voices:
        note = "" if voice.named else t("by a link, without a name: it never counts as the second")
        yield Station(title=t("Approved"), passed=True, who=voice.who, at=voice.at, note=note)
    if command.state in _ENDS_WITHOUT:
        yield _end(command, ranks)
        return
    if command.state is CommandState.PROPOSED:
        missing = max(command.persons - sum(voice.named for voice in command.voices), 1)
        yield Station(
            title=t("Waits for {people} to decide", people=plural(missing, "person", "people")), passed=False
        )
    elif not command.voices and command.decided_by:
        yield Station(title=t("Approved"), passed=True, who=command.decided_by, at=command.decided_at)
    yield Station(title=t("Handed to the trainer with a receipt"), passed=command.state in _HANDED)
    yield _applied(command, ranks)


def _end(command: CommandView, ranks: int | None) -> Station:
    where = (
        "" if command.step is None else t("at step {step}, {ranks} alike", step=command.step, ranks=_all(ranks))
    )
    ill = command.state is CommandState.REFUSED
    who = command.decided_by if command.state is CommandState.DENIED else ""
    at = command.done_at or command.decided_at
    return Station(title=t(_ENDS_WITHOUT[command.state]), passed=True, who=who, at=at, note=where, ill=ill)


def _applied(command: CommandView, ranks: int | None) -> Station:
    if command.state is not CommandState.APPLIED:
        return Station(title=t("Applied at a step boundary, {ranks} together", ranks=_all(ranks)), passed=False)
    step = "" if command.step is None else t(" at the boundary of step {step}", step=command.step)
    return Station(
        title=t("Applied{step}, {ranks} together", step=step, ranks=_all(ranks)), passed=True, at=command.done_at
    )


def _all(ranks: int | None) -> str:
    if ranks is None:
        return t("on all ranks")
    return t("on its one rank") if ranks == 1 else t("on all {ranks} ranks", ranks=ranks)


def ranks_of(config: Json) -> int | None:
    """As the trainer told it."""
    told = config.get("world_size")
    return told if isinstance(told, int) and not isinstance(told, bool) and told > 0 else None
