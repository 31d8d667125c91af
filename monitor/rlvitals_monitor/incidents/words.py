"""What a post-mortem says, in plain words, for Markdown and for HTML alike. Pure; nothing here is escaped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from rlvitals.contract.alert import Alert, AlertState
from rlvitals.contract.command import CommandState
from rlvitals.contract.incident import IncidentStory, lanes
from rlvitals.contract.view import CommandView, TextView
from rlvitals_monitor.notify.facts import in_short
from rlvitals_monitor.notify.plain_text import number

CHANGES_SHOWN = 60
_DONE = {
    CommandState.OBSERVED: "would have been done",
    CommandState.PROPOSED: "waits for a decision",
    CommandState.PENDING: "on its way to the trainer",
    CommandState.DELIVERED: "delivered to the trainer",
    CommandState.APPLIED: "applied",
    CommandState.REFUSED: "refused",
    CommandState.DENIED: "denied",
    CommandState.EXPIRED: "expired",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """One rule's line in the order of onset."""

    step: str
    rule: str
    severity: str
    evidence: str
    until: str
    seen_by: str


def moment(at: datetime | None) -> str:
    return "unknown" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def facts(story: IncidentStory) -> list[tuple[str, str]]:
    """Label and value, in the order of reading."""
    one, run = story.incident, story.run
    about = [run.project, run.framework, run.model]
    ordinal = next((a.ordinal for a in run.attempts if a.id == one.attempt), None)
    since = one.onset_step if one.since_step is None else one.since_step
    return [
        ("Run", f"{run.name} ({run.id})" if run.name and run.name != run.id else run.id),
        ("Project, trainer, model", ", ".join(part for part in about if part) or "not told"),
        ("Attempt", f"{ordinal} ({one.attempt})" if ordinal is not None else one.attempt),
        ("Cause", f"{one.cause} (confidence {one.confidence})"),
        ("Severity", one.severity.value),
        ("Began", f"step {since:,}, {moment(one.onset_at)}"),
        ("First alert", f"step {one.onset_step:,}"),
        ("State", _state(story)),
        ("Last healthy checkpoint", _way_back(story)),
        (
            "GPU-hours since",
            "unknown (the run did not tell its devices)" if one.gpu_hours is None else f"{one.gpu_hours:.2f}",
        ),
    ]


def _state(story: IncidentStory) -> str:
    if story.incident.is_open:
        return f"open at step {story.run.last_step:,}" if story.run.last_step is not None else "open"
    ends = [a.resolved_step for a in story.alerts if a.resolved_step is not None]
    times = [a.resolved_at for a in story.alerts if a.resolved_at is not None]
    return f"over since step {max(ends):,}, {moment(max(times, default=None))}" if ends else "over"


def _way_back(story: IncidentStory) -> str:
    one = story.incident
    if one.healthy_checkpoint is None:
        return "none was told of before it began"
    return f"step {one.healthy_checkpoint:,}, {one.healthy_checkpoint_path or 'path not told'}"


def onsets(story: IncidentStory) -> Iterator[Onset]:
    for lane in lanes(story.alerts):
        for alert in lane.alerts:
            yield Onset(
                step=f"{alert.since_step:,}",
                rule=alert.rule,
                severity=alert.severity.value,
                evidence=_evidence(alert),
                until=_until(alert),
                seen_by=alert.acknowledged_by or "nobody",
            )


def _evidence(alert: Alert) -> str:
    """A missing value is told as missing: a rule may fire because of it."""
    if not alert.metric:
        return alert.summary or "no metric"
    limit = "" if alert.threshold is None else f", {alert.limit.format(limit=number(alert.threshold))}"
    return f"{alert.of} {number(alert.value)}{limit}"


def _until(alert: Alert) -> str:
    if alert.state is AlertState.RESOLVED:
        return "its end" if alert.resolved_step is None else f"step {alert.resolved_step:,}"
    return "goes on"


def advice(story: IncidentStory) -> list[str]:
    """What to do: the run's own trainer first; what else there is for others."""
    one = story.incident
    own = sorted(one.change.items(), key=lambda item: not story.run.framework.startswith(item[0]))
    lines = [one.advice, *(f"{trainer}: {what}" for trainer, what in own), one.isnt]
    return [line for line in lines if line]


def deeds(story: IncidentStory) -> list[str]:
    return [_deed(command) for command in story.commands]


def _deed(command: CommandView) -> str:
    what = in_short(command.kind, command.knob, command.argument)
    parts = [f"{moment(command.created_at)}: {what}, asked by {command.who or 'nobody named'}"]
    if command.decided_by:
        parts.append(f"decided by {command.decided_by}")
    at = "" if command.step is None else f" at step {command.step:,}"
    change = f" ({number(command.before)} → {number(command.after)})" if command.after is not None else ""
    parts.append(f"{_DONE[command.state]}{at}{change}")
    parts += [part for part in (command.why, command.reason) if part]
    return "; ".join(parts)


def timeline(story: IncidentStory) -> list[str]:
    """Each change of an alert; the first `CHANGES_SHOWN`, and how many follow."""
    told = [
        f"{moment(one.at)}, step {one.step:,}: {one.alert.rule} {one.before.value} → {one.after.value}"
        + (f" ({one.reason})" if one.reason else "")
        for one in story.transitions
    ]
    more = len(told) - CHANGES_SHOWN
    return [*told[:CHANGES_SHOWN], f"and {more:,} more changes"] if more > 0 else told


def about_text(text: TextView, *, named: bool) -> str:
    signs = [f"step {text.step:,}, sample {text.sample}"]
    if named:
        signs.append("named by the evidence")
    if text.invalid_utf8:
        signs.append(f"{text.invalid_utf8:,} broken byte sequences")
    if text.truncated:
        signs.append("cut by the limit")
    if text.reward is not None:
        signs.append(f"reward {number(text.reward)}")
    return ", ".join(signs)
