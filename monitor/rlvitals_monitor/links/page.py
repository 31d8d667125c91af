"""The page behind a link, whole and without scripts. Pure; jinja2 escapes whatever is put into it.

What others said (names, rules' words, reasons) is made plain first: no character in it hides or turns others.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from rlvitals.contract.alert import Alert
from rlvitals.contract.command import CommandKind
from rlvitals.contract.view import CommandView
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.control.quorum import persons
from rlvitals_monitor.links.act import SILENCE_S, Voice
from rlvitals_monitor.links.offer import Offer, Standing
from rlvitals_monitor.links.words import words_in
from rlvitals_monitor.notify.facts import measured
from rlvitals_monitor.notify.language import Language, Phrase
from rlvitals_monitor.notify.plain_text import NAME_LIMIT, TEXT_LIMIT, number, plain, run_name
from rlvitals_monitor.store.links import LinkAct

_HERE = files("rlvitals_monitor.links")
_STYLE = (_HERE / "page.css").read_text("utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGE = Environment(autoescape=True, undefined=StrictUndefined).from_string(
    (_HERE / "page.html").read_text("utf-8")
)

HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    # A page without a referrer would post its form with the origin "null", which is refused.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}

_QUESTIONS = {
    LinkAct.APPROVE: ("Approve this command?", "Approve"),
    LinkAct.DENY: ("Deny this command?", "Deny"),
    LinkAct.ACKNOWLEDGE: ("Look after this alert?", "Acknowledge"),
    LinkAct.SILENCE: ("Silence this alert for an hour?", "Silence for 1 h"),
}
_EFFECTS = {
    CommandKind.PAUSE: (
        "Training pauses at the next step boundary, for at most {argument} s, and then goes on by itself."
    ),
    CommandKind.RESUME: "Training goes on at the next step boundary.",
    CommandKind.STOP: "Training writes a checkpoint at the next step boundary and ends.",
    CommandKind.CHECKPOINT: "Training writes a checkpoint at the next step boundary and goes on.",
    CommandKind.SET_KL_COEF: "At the next step boundary the KL coefficient becomes {argument}.",
    CommandKind.SCALE_LR: "At the next step boundary the learning rate is multiplied by {argument}.",
    CommandKind.SET_KNOB: "At the next step boundary {knob} becomes {argument}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who looks at the page: who is signed in, and as what voice the link would act (None: sign in first)."""

    principal: Principal | None
    voice: Voice | None
    sign_in: str


def ask(offer: Offer, visitor: Visitor, language: Language, now: datetime, *, again: bool = False) -> str:
    """The page of a link: what would happen and a button, or why there is none.

    ``again``: the page loads itself once more, since a browser that comes from elsewhere leaves our cookie behind.
    """
    say = words_in(language)
    heading, lead, tone = _said(offer, say, now)
    shown: dict[str, object] = {"heading": heading, "lead": lead, "tone": tone, "again": again}
    shown["facts"] = _facts(offer, say)
    if offer.run is not None:
        shown |= {"run": f"/ui/run/{quote(offer.run.id, safe='')}", "run_words": say("Open the run")}
    if offer.standing is Standing.OPEN:
        shown |= _question(offer.link.act, visitor, say)
    return _render(shown, language)


def refuse(reason: str, language: Language = Language.ENGLISH) -> str:
    """The page of what could not be done, or of a link that is not known (``reason`` is empty)."""
    say = words_in(language)
    if reason:
        return _render(
            {
                "heading": say("This could not be done"),
                "lead": say("{reason}.", reason=plain(reason, TEXT_LIMIT)),
                "tone": "refused",
            },
            language,
        )
    lead = say("It may be cut off, or too old. The run's page has what can be done.")
    return _render({"heading": say("This link is not known here"), "lead": lead, "tone": "over"}, language)


def _render(shown: dict[str, object], language: Language) -> str:
    empty = dict.fromkeys(
        ("run", "run_words", "button", "ask_reason", "who", "sign_in", "sign_in_words", "facts"), ""
    )
    return _PAGE.render({**empty, "again": False, **shown, "lang": language.value, "style": Markup(_STYLE)})


def _said(offer: Offer, say: Phrase, now: datetime) -> tuple[str, str, str]:
    """(heading, lead, tone)"""
    link = offer.link
    if offer.standing is Standing.OPEN:
        return say(_QUESTIONS[link.act][0]), _effect(offer, say, now), "open"
    if offer.standing is Standing.USED:
        at = _moment(link.used_at) if link.used_at is not None else ""
        who = plain(link.used_by, NAME_LIMIT)
        done = say("{what}: done", what=say(_QUESTIONS[link.act][1]))
        return done, say("This link was used at {at} by {who}. It works once.", at=at, who=who), "good"
    if offer.standing is Standing.EXPIRED:
        lead = say(
            "It was good until {at}. The run's page has what can still be done.", at=_moment(link.expires_at)
        )
        return say("This link has expired"), lead, "over"
    heading = say("This link does nothing any more")
    if offer.standing is Standing.CHANGED:
        return heading, say("What it was about is not what it was when this link was made."), "over"
    return heading, say("Nothing is left to do: {reason}.", reason=plain(offer.reason, TEXT_LIMIT)), "over"


def _effect(offer: Offer, say: Phrase, now: datetime) -> str:
    act, command = offer.link.act, offer.command
    if act is LinkAct.ACKNOWLEDGE:
        return say("It stands beside the alert that somebody looks after it. Reminders and escalation stop.")
    if act is LinkAct.SILENCE or command is None:
        until = _moment(now + timedelta(seconds=SILENCE_S))
        return say(
            "No channel is told of this rule on this run until {until}. The alert stays on its page.", until=until
        )
    if act is LinkAct.DENY:
        return say("The proposal ends, and nothing is done to the run: {command}.", command=_named(command))
    argument = number(command.argument)
    return say(_EFFECTS[command.kind], argument=argument, knob=plain(command.knob, NAME_LIMIT))


def _question(act: LinkAct, visitor: Visitor, say: Phrase) -> dict[str, object]:
    voice, principal = visitor.voice, visitor.principal
    if voice is None:
        who = say("This needs a sign-in first. You come back here.")
        if principal is not None:
            name = plain(principal.name, NAME_LIMIT)
            who = say("{who} may not operate runs. Sign in with a token that may.", who=name)
        return {"who": who, "sign_in": visitor.sign_in, "sign_in_words": say("Sign in")}
    asked: dict[str, object] = {"button": say(_QUESTIONS[act][1])}
    if act is LinkAct.DENY:
        asked["ask_reason"] = say("Reason, if you like")
    if voice.named:
        return {**asked, "who": say("You act as {who}.", who=plain(voice.who, NAME_LIMIT))}
    who = say(
        "You are not signed in. It counts as one voice without a name, and is noted as from {who}.", who=voice.who
    )
    return {**asked, "who": who, "sign_in": visitor.sign_in, "sign_in_words": say("Sign in to act by name")}


def _facts(offer: Offer, say: Phrase) -> list[tuple[str, str]]:
    facts = [] if offer.command is None else _of_command(offer.command, say)
    if offer.run is not None:
        facts += [
            (say("Run"), plain(run_name(offer.run), NAME_LIMIT)),
            (say("Project"), plain(offer.run.project, NAME_LIMIT)),
        ]
    if offer.alert is not None:
        facts += _of_alert(offer.alert, say)
    if offer.standing is Standing.USED:
        facts += _outcome(offer, say)
    return [(label, value) for label, value in facts if value]


def _of_command(command: CommandView, say: Phrase) -> list[tuple[str, str]]:
    facts = [(say("Command"), _named(command))]
    if command.bounds is not None:
        low, high = number(command.bounds.low), number(command.bounds.high)
        facts.append((say("Allowed"), say("{low} to {high}", low=low, high=high)))
    if command.persons > 1:
        heard = len(persons(command.voices))
        counted = say("{heard} of {wanted} people", heard=heard, wanted=command.persons)
        facts.append((say("Approved so far"), counted))
    return [
        *facts,
        (say("Asked for by"), plain(command.who, NAME_LIMIT)),
        (say("Why"), plain(command.why, TEXT_LIMIT)),
        (say("Open until"), _moment(command.expires_at)),
    ]


def _of_alert(alert: Alert, say: Phrase) -> list[tuple[str, str]]:
    summary = f"{alert.rule} ({alert.severity.value}): {alert.summary}" if alert.summary else alert.rule
    return [
        (say("Alert"), plain(summary, TEXT_LIMIT)),
        (say("Since step"), f"{alert.since_step}"),
        (say("Over at step"), "" if alert.resolved_step is None else f"{alert.resolved_step}"),
        (say("Value"), f"{plain(alert.of, NAME_LIMIT)} {measured(alert, say)}".strip()),
    ]


def _outcome(offer: Offer, say: Phrase) -> list[tuple[str, str]]:
    if offer.command is not None:
        told = f"{offer.command.state.value}: {offer.command.reason}" if offer.command.reason else ""
        return [(say("State now"), plain(told or offer.command.state.value, TEXT_LIMIT))]
    if offer.alert is not None and offer.alert.acknowledged_by:
        who = plain(offer.alert.acknowledged_by, NAME_LIMIT)
        return [(say("State now"), f"{offer.alert.state.value}, {say('acknowledged by {who}', who=who)}")]
    return []


def _named(command: CommandView) -> str:
    knob = f" {plain(command.knob, NAME_LIMIT)}" if command.knob else ""
    argument = "" if command.argument is None else f" {number(command.argument)}"
    return f"{command.kind.value}{knob}{argument}"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
