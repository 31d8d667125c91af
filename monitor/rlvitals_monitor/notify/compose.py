"""From changes of alerts to what people are told, in their language. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rlvitals.contract.alert import Severity
from rlvitals_monitor.notify.digest import told_runs, totals
from rlvitals_monitor.notify.facts import facts_of, is_firing, lines_of
from rlvitals_monitor.notify.language import Phrase, phrase_of
from rlvitals_monitor.notify.message import Link, Message, Section, Tone
from rlvitals_monitor.notify.notification import Act, Action, Diagnosis, Notification, Purpose, RunCount, Sample
from rlvitals_monitor.notify.plain_text import (
    NAME_LIMIT,
    SAMPLE_LIMIT,
    TEXT_LIMIT,
    TITLE_LIMIT,
    number,
    plain,
    run_name,
    spelt,
)
from rlvitals_monitor.notify.rule_words import RuleWords, rule_words_of
from rlvitals_monitor.notify.template import rendered
from rlvitals_monitor.notify.trend import Trend, marks, sparkline

CHANGES_SHOWN = 3
DIGEST_RUNS = 8
RUNS_LINKED = 3


def compose(notification: Notification) -> Message:
    say, words = phrase_of(notification.language), rule_words_of(notification.language)
    notification = _unsettled(notification)
    state, tone = _state(notification, say), _tone(notification)
    lead = notification.lead.transition
    if notification.run is None:
        title, summary, facts, sections = _digest(notification, state, say, words)
    else:
        title = _title(notification, state, say)
        summary = words(lead.alert.summary) or lead.reason
        facts, sections = facts_of(notification.lead, say), list(_sections(notification, say, words))
    extras = notification.extras
    message = Message(
        title=plain(title, TITLE_LIMIT),
        state=state,
        tone=tone,
        summary=plain(summary, TEXT_LIMIT),
        facts=tuple((plain(label, NAME_LIMIT), plain(text, NAME_LIMIT)) for label, text in facts),
        sections=tuple(sections),
        links=tuple(_links(notification, say)),
        trend=extras.trend if extras.draws and extras.trend is not None and extras.trend.steps else None,
    )
    return rendered(message, notification, extras.template) if extras.template else message


def _unsettled(notification: Notification) -> Notification:
    """Without the beginning of what is over: that it is, and how long it lasted, says all. Counts stay whole."""
    if notification.counts:
        return notification
    return replace(notification, items=tuple(item for item in notification.items if not item.settled))


def _tone(notification: Notification) -> Tone:
    if notification.is_over:
        return Tone.RESOLVED
    return Tone(_strongest(notification).value)


def _strongest(notification: Notification) -> Severity:
    firing = [i.transition.alert.severity for i in notification.items if is_firing(i.transition)]
    firing += [count.severity for count in notification.counts if count.firing]
    return max(firing, key=lambda severity: severity.rank, default=notification.lead.transition.alert.severity)


def _state(notification: Notification, say: Phrase) -> str:
    if notification.is_over:
        return say("RESOLVED")
    lead = notification.lead.transition
    if notification.counts or any(is_firing(item.transition) for item in notification.items):
        return say(_strongest(notification).value.upper())
    return say(lead.after.value.upper())


def _title(notification: Notification, state: str, say: Phrase) -> str:
    lead, more = notification.lead, len(notification.items) - 1 + _uncounted(notification)
    sentence = {
        Purpose.NEWS: "{state}: {rule} on {run}",
        Purpose.REMINDER: "{state}, still open: {rule} on {run}",
        Purpose.ESCALATION: "{state}, acknowledged by nobody: {rule} on {run}",
    }[lead.purpose]
    rule = plain(lead.transition.alert.rule, NAME_LIMIT)
    named = say("{rule} and {more} more", rule=rule, more=more) if more else rule
    return say(sentence, state=state, rule=named, run=run_name(lead.run))


def _uncounted(notification: Notification) -> int:
    """Changes of one run that the message counts but does not hold."""
    return max(sum(totals(notification.counts)) - len(notification.items), 0)


def _sections(notification: Notification, say: Phrase, words: RuleWords) -> Iterator[Section]:
    extras, lead = notification.extras, notification.lead.transition
    found = extras.diagnosis
    if is_firing(lead):
        yield from _section(say("What to do"), words(lead.alert.advice))
    others = [item for item in notification.items[1:] if not item.symptom_of]
    symptoms = [item for item in notification.items[1:] if item.symptom_of]
    yield from _section(say("Also"), lines_of(others, say, _uncounted(notification)))
    yield from _section(say("Symptoms"), lines_of(symptoms, say))
    if found is not None and is_firing(lead):
        yield from _diagnosed(found, say, words)
    if extras.trend is not None and extras.trend.steps:
        text = plain(_trend(extras.trend, say), TEXT_LIMIT)
        yield Section(label=say("Trend"), text=text, exact=True, pictured=True)
    if extras.sample is not None and extras.sample.completion:
        text = spelt(extras.sample.completion, SAMPLE_LIMIT)
        yield Section(label=_sample_label(extras.sample, say), text=text, exact=True)


def _sample_label(sample: Sample, say: Phrase) -> str:
    label = say("Worst sample of step {step}", step=sample.step)
    broken = say("{count} ill-formed sequences", count=sample.invalid_utf8) if sample.invalid_utf8 else ""
    reward = "" if sample.reward is None else say("reward {reward}", reward=number(sample.reward))
    told = ", ".join(part for part in (broken, reward) if part)
    return say("{label} ({told})", label=label, told=told) if told else label


def _diagnosed(found: Diagnosis, say: Phrase, words: RuleWords) -> Iterator[Section]:
    confidence = say(found.confidence)
    cause = say("{headline} ({confidence} confidence).", headline=words(found.headline), confidence=confidence)
    yield from _section(say("Diagnosis"), f"{cause} {words(found.advice)}")
    shown = found.change[:CHANGES_SHOWN]
    changes = [words(text) if len(shown) == 1 else f"{key}: {words(text)}" for key, text in shown]
    yield from _section(say("What to change"), "; ".join(changes))
    yield from _section(say("What it is not"), words(found.isnt))


def _section(label: str, text: str) -> Iterator[Section]:
    """None where nothing can be read: a provider may refuse a message for one empty part."""
    if shown := plain(text, TEXT_LIMIT):
        yield Section(label=label, text=shown)


def _trend(trend: Trend, say: Phrase) -> str:
    finite = trend.finite
    span = say("steps {first} to {last}", first=trend.steps[0], last=trend.steps[-1])
    range_ = say("{low} to {high}", low=number(min(finite)), high=number(max(finite))) if finite else ""
    signs = [f"{sign} {say(name) if name == 'missing' else name}" for sign, name in marks(trend)]
    return f"{sparkline(trend)} " + ", ".join(part for part in (span, range_, *signs) if part)


def _digest(
    notification: Notification, state: str, say: Phrase, words: RuleWords
) -> tuple[str, str, list[tuple[str, str]], list[Section]]:
    """Every change is counted, though not every run is named; what helps against all of them is said."""
    counts = sorted(notification.counts, key=_weight)
    firing, resolved = totals(counts)
    sentence = "{state}: {changes} changes of alerts in {runs} runs"
    title = say(sentence, state=state, changes=firing + resolved, runs=len(counts))
    summary = say("{firing} firing, {resolved} resolved.", firing=firing, resolved=resolved)
    advised = {item.transition.alert.advice for item in notification.items if is_firing(item.transition)}
    if len(advised) == 1 and not resolved:
        summary = f"{summary} {words(advised.pop())}"
    sections = [
        Section(label=plain(name, NAME_LIMIT), text=plain(text, TEXT_LIMIT))
        for name, text in told_runs(counts, DIGEST_RUNS, say)
    ]
    return title, summary, [], sections


def _weight(count: RunCount) -> tuple[int, int]:
    return -count.severity.rank if count.firing else 1, -(count.firing + count.resolved)


def _links(notification: Notification, say: Phrase) -> Iterator[Link]:
    if notification.link:
        step = notification.lead.transition.step
        text = say("Open the runs") if notification.run is None else say("Open the run at step {step}", step=step)
        yield Link(text=text, url=notification.link)
    for count in sorted(notification.counts, key=_weight)[:RUNS_LINKED] if notification.run is None else ():
        if count.link:
            yield Link(text=say("Open {about}", about=plain(run_name(count.run), NAME_LIMIT)), url=count.link)
    for action in notification.extras.actions:
        yield Link(text=_named(action, say), url=action.url)


def _named(action: Action, say: Phrase) -> str:
    sentence = {
        Act.ACKNOWLEDGE: "Acknowledge",
        Act.SILENCE: "Silence for 1 h",
        Act.APPROVE: "Approve {about}",
        Act.DENY: "Deny {about}",
    }[action.act]
    return say(sentence, about=plain(action.about, NAME_LIMIT)).strip()
