"""What a severity, a light and a state look like: never colour alone, always shape and word too.

The style sheet and the charts read the same `palettes`: `css_variables` hands them to the browser, `figures` draws
with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.command import CommandState, Policy
from rlvitals.contract.hooks import HookState
from rlvitals.contract.view import Light, RunState, SilenceState
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.palettes import DARK as DARK
from rlvitals_dashboard.palettes import LIGHT as LIGHT
from rlvitals_dashboard.palettes import Theme as Theme
from rlvitals_dashboard.palettes import css_variables as css_variables
from rlvitals_dashboard.palettes import pick as pick


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """``tone`` picks the colours (a CSS class), ``mark`` is a shape that needs no colour, ``word`` says it."""

    tone: str
    mark: str
    word: str

    @property
    def said(self) -> str:
        """The word in the visitor's language."""
        return t(self.word)


SEVERITIES = {
    Severity.CRITICAL: Look(tone="critical", mark="◆", word="Critical"),
    Severity.WARNING: Look(tone="warning", mark="▲", word="Warning"),
    Severity.INFO: Look(tone="info", mark="●", word="Info"),
}

LIGHTS = {
    Light.RED: Look(tone="critical", mark="◆", word="Unhealthy"),
    Light.AMBER: Look(tone="warning", mark="▲", word="Needs a look"),
    Light.GREEN: Look(tone="good", mark="●", word="Healthy"),
    Light.GREY: Look(tone="idle", mark="○", word="No verdict"),
}

ALERT_STATES = {
    AlertState.FIRING: phrase("Firing"),
    AlertState.PENDING: phrase("Pending"),
    AlertState.RESOLVED: phrase("Resolved"),
    AlertState.INACTIVE: phrase("Inactive"),
}

RUN_STATES = {
    RunState.CREATED: Look(tone="idle", mark="○", word="Created"),
    RunState.RUNNING: Look(tone="good", mark="▶", word="Running"),
    RunState.LATE: Look(tone="warning", mark="◷", word="Late"),
    RunState.STALLED: Look(tone="critical", mark="■", word="Stalled"),
    RunState.PAUSED: Look(tone="info", mark="❚❚", word="Paused"),
    RunState.FINISHED: Look(tone="idle", mark="✓", word="Finished"),
    RunState.FAILED: Look(tone="critical", mark="✕", word="Failed"),
    RunState.STOPPED: Look(tone="idle", mark="■", word="Stopped"),
}

COMMAND_STATES = {
    CommandState.OBSERVED: Look(tone="idle", mark="○", word="Would have been done"),
    CommandState.PROPOSED: Look(tone="warning", mark="?", word="Waits for you"),
    CommandState.PENDING: Look(tone="info", mark="…", word="Waits for the trainer"),
    CommandState.DELIVERED: Look(tone="info", mark="→", word="Delivered"),
    CommandState.APPLIED: Look(tone="good", mark="✓", word="Applied"),
    CommandState.REFUSED: Look(tone="critical", mark="✕", word="Refused"),
    CommandState.DENIED: Look(tone="idle", mark="✕", word="Denied"),
    CommandState.EXPIRED: Look(tone="idle", mark="◷", word="Expired"),
}

POLICIES = {
    Policy.OBSERVE: Look(tone="idle", mark="○", word="Observe"),
    Policy.APPROVE: Look(tone="info", mark="?", word="Approve"),
    Policy.AUTO: Look(tone="warning", mark="▶", word="Auto"),
}

VERDICTS = {
    "helped": Look(tone="good", mark="●", word="Helped"),
    "no effect": Look(tone="idle", mark="○", word="No effect"),
    "worse": Look(tone="critical", mark="◆", word="Made it worse"),
    "too early": Look(tone="info", mark="◷", word="Too early to say"),
    "not judged": Look(tone="idle", mark="–", word="Not judged"),
}
TURNS = {
    "better": Look(tone="good", mark="●", word="Better"),
    "same": Look(tone="idle", mark="○", word="Same"),
    "worse": Look(tone="critical", mark="◆", word="Worse"),
    "told": Look(tone="info", mark="→", word="Told only"),
    "not judged": Look(tone="idle", mark="–", word="Not judged"),
}
"""Both by the names that the service gives."""

SILENCE_STATES = {
    SilenceState.ACTIVE: Look(tone="info", mark="●", word="In force"),
    SilenceState.RESTING: Look(tone="idle", mark="◷", word="Comes again"),
    SilenceState.PENDING: Look(tone="idle", mark="○", word="To come"),
    SilenceState.ENDED: Look(tone="idle", mark="✓", word="Over"),
}

DELIVERY_STATES = {
    "waiting": Look(tone="info", mark="…", word="Waits"),
    "silenced": Look(tone="idle", mark="◷", word="Silenced"),
    "delivered": Look(tone="good", mark="✓", word="Delivered"),
    "failed": Look(tone="critical", mark="✕", word="Given up"),
    "dropped": Look(tone="idle", mark="–", word="Left out"),
}
"""By the names that the service gives; an unknown one is shown as it is."""

STANDINGS = {
    "holds": Look(tone="critical", mark="◆", word="Holds"),
    "unknown": Look(tone="info", mark="?", word="Cannot tell yet"),
    "quiet": Look(tone="good", mark="●", word="Quiet"),
    "dormant": Look(tone="idle", mark="–", word="Cannot run"),
    "nowhere": Look(tone="idle", mark="○", word="No run"),
}
"""How a rule stands."""

CHANGES = {
    "new": Look(tone="warning", mark="+", word="New"),
    "gone": Look(tone="info", mark="−", word="Gone"),
    "moved": Look(tone="info", mark="→", word="Moved"),
    "changed": Look(tone="info", mark="→", word="Changed"),
    "same": Look(tone="idle", mark="=", word="As before"),
}
"""What an edit of the rules does to a rule or to an alert."""

HOOK_STATES = {
    HookState.SEEN: Look(tone="good", mark="●", word="Sees"),
    HookState.PATCHED: Look(tone="idle", mark="○", word="Waits"),
    HookState.BLIND: Look(tone="warning", mark="▲", word="Blind"),
    HookState.FAILING: Look(tone="critical", mark="◆", word="Fails"),
    HookState.ABSENT: Look(tone="warning", mark="–", word="Absent"),
}
