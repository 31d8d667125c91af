"""The lines of the audit in the visitor's language: what was done, and the forms that its details have. Pure.

The audit itself is English, since its chain is made of its words. What has another form is shown as it is.
"""

from __future__ import annotations

import re
from functools import cache

from rlvitals_dashboard.language import phrase, t

_PLACE = re.compile(r"\{(\w+)\}")
_LONGEST = 1000
"""Characters of a detail that are compared with the forms."""

DONE = {
    "acknowledged": phrase("acknowledged"),
    "applied": phrase("applied"),
    "approved": phrase("approved"),
    "channel created": phrase("channel created"),
    "channel changed": phrase("channel changed"),
    "channel deleted": phrase("channel deleted"),
    "delivered": phrase("delivered"),
    "denied": phrase("denied"),
    "escalated": phrase("escalated"),
    "expired": phrase("expired"),
    "KL policy chosen": phrase("KL policy chosen"),
    "KL policy taken back": phrase("KL policy taken back"),
    "maintenance asked for": phrase("maintenance asked for"),
    "maintenance ended": phrase("maintenance ended"),
    "not proposed": phrase("not proposed"),
    "observed": phrase("observed"),
    "password chosen": phrase("password chosen"),
    "pending": phrase("pending"),
    "policy chosen": phrase("policy chosen"),
    "policy taken back": phrase("policy taken back"),
    "proposed": phrase("proposed"),
    "refused": phrase("refused"),
    "requested": phrase("requested"),
    "retention chosen": phrase("retention chosen"),
    "retention taken back": phrase("retention taken back"),
    "rule test-fired": phrase("rule test-fired"),
    "rules edited": phrase("rules edited"),
    "run archived": phrase("run archived"),
    "run deleted": phrase("run deleted"),
    "run labels": phrase("run labels"),
    "run notes": phrase("run notes"),
    "run owner": phrase("run owner"),
    "run shared": phrase("run shared"),
    "session ended": phrase("session ended"),
    "sessions ended": phrase("sessions ended"),
    "share revoked": phrase("share revoked"),
    "sign-in link made": phrase("sign-in link made"),
    "sign-in refused": phrase("sign-in refused"),
    "signed in": phrase("signed in"),
    "signed out": phrase("signed out"),
    "silence asked for": phrase("silence asked for"),
    "silence ended": phrase("silence ended"),
    "token created": phrase("token created"),
    "token revoked": phrase("token revoked"),
    "token rotated": phrase("token rotated"),
    "unacknowledged": phrase("unacknowledged"),
    "user added": phrase("user added"),
    "user disabled": phrase("user disabled"),
    "user enabled": phrase("user enabled"),
    "user invited": phrase("user invited"),
    "user removed": phrase("user removed"),
    "user's role changed": phrase("user's role changed"),
    "voice": phrase("voice"),
}

FORMS = {
    "signed in": (
        phrase("by a link that works once from {host}, session {session}"),
        phrase("by an invitation from {host}, session {session}"),
        phrase("with a password from {host}, session {session}"),
        phrase("with token {token} from {host}, session {session}"),
    ),
    "sign-in refused": (
        phrase("with a token that is unknown or over, from {host}"),
        phrase("by a link that is unknown, used or over, from {host}"),
    ),
    "signed out": (phrase("session {session}"),),
    "sessions ended": (phrase("{count}, everybody's"), phrase("{count}, their own")),
    "password chosen": (phrase("by an invitation of {who}"),),
    "sign-in link made": (phrase("for token {token}, good until {moment} UTC"),),
    "token created": (phrase("{token}: {scopes}, until {moment} UTC"),),
    "token rotated": (phrase("{token} by {other}; the old one ends after {seconds} s"),),
    "run shared": (phrase("{share} until {moment} UTC"),),
    "run owner": (phrase("nobody → {after}"), phrase("{before} → nobody")),
    "run archived": (phrase("yes"), phrase("no")),
    "policy chosen": (
        phrase("project {name}: {policy}"),
        phrase("rule {name}: {policy}"),
        phrase("run {name}: {policy}"),
    ),
    "retention chosen": (
        phrase("all projects: points {points}, texts {texts}, histograms {histograms}, runs {runs}"),
        phrase("project {name}: points {points}, texts {texts}, histograms {histograms}, runs {runs}"),
    ),
    "retention taken back": (phrase("all projects"), phrase("project {name}")),
    "silence asked for": (
        phrase("{silence}: {match} until {moment} UTC: {why}"),
        phrase("{silence}: {match} until {moment} UTC"),
    ),
    "channel created": (phrase("{name}: {kind} to {host}, from {severity}"),),
    "channel deleted": (phrase("{name}: {kind} to {host}, from {severity}"),),
    "acknowledged": (phrase("{rule} since step {step} ({alert}) by {who}"),),
    "unacknowledged": (phrase("{rule} since step {step} ({alert}), was {who}"),),
    "escalated": (phrase("{rule} since step {step} ({alert}) to {channel}"),),
    "rules edited": (phrase("version {number}: no rule differs"), phrase("version {number}: {changes}")),
}
"""By what was done: the first that fits says the detail."""
WORDS = {
    "for ever": phrase("for ever"),
    "info": phrase("Info"),
    "warning": phrase("Warning"),
    "critical": phrase("Critical"),
    "observe": phrase("Observe"),
    "approve": phrase("Approve"),
    "auto": phrase("Auto"),
}
"""Values in those places that are words of ours."""
OURS = frozenset({"points", "texts", "histograms", "runs", "severity", "policy"})


def what_words(what: str) -> str:
    return t(DONE[what]) if what in DONE else what


def detail_words(what: str, detail: str) -> str:
    for form in FORMS.get(what, ()):
        found = _pattern(form).fullmatch(detail[:_LONGEST])
        if found is not None:
            return t(form, **{name: _value(name, part) for name, part in found.groupdict().items()})
    return detail


def _value(name: str, part: str) -> str:
    return t(WORDS[part]) if name in OURS and part in WORDS else part


@cache
def _pattern(form: str) -> re.Pattern[str]:
    parts = _PLACE.split(form)
    return re.compile(
        "".join(re.escape(p) if i % 2 == 0 else f"(?P<{p}>.+?)" for i, p in enumerate(parts)), re.DOTALL
    )
