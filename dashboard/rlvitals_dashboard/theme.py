"""Two palettes, and what a severity, a light and a state look like: never colour alone, always shape and word too.

The style sheet and the charts read the same values: `css_variables` hands them to the browser, `figures` draws
with them. Every text colour reaches WCAG AA (4.5:1) on the surfaces that it is used on; a test holds that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.command import CommandState, Policy
from rlvitals.contract.hooks import HookState
from rlvitals.contract.view import Light, RunState, SilenceState
from rlvitals_dashboard.language import phrase, t


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """``*_soft`` colours are backgrounds for text in the colour of the same name."""

    name: str
    page: str
    surface: str
    sunken: str
    text: str
    muted: str
    border: str
    grid: str
    accent: str
    accent_soft: str
    on_accent: str
    series: str
    envelope: str
    nan: str
    pos_inf: str
    neg_inf: str
    action: str
    critical: str
    critical_soft: str
    warning: str
    warning_soft: str
    info: str
    info_soft: str
    good: str
    good_soft: str
    idle: str
    idle_soft: str

    def severity(self, severity: Severity) -> str:
        return {"critical": self.critical, "warning": self.warning, "info": self.info}[severity.value]


LIGHT = Theme(
    name="light",
    page="#f4f6f9",
    surface="#ffffff",
    sunken="#eef1f6",
    text="#17202b",
    muted="#526071",
    border="#d8dee8",
    grid="#e6eaf0",
    accent="#0a5ec2",
    accent_soft="#e3eefb",
    on_accent="#ffffff",
    series="#0a5ec2",
    envelope="rgba(10,94,194,0.18)",
    nan="#9b1f87",
    pos_inf="#a04a00",
    neg_inf="#0b6b64",
    action="#5b3fb8",
    critical="#b3201a",
    critical_soft="#fdeceb",
    warning="#855100",
    warning_soft="#fff3dc",
    info="#1257b0",
    info_soft="#e6f0fc",
    good="#0c6b43",
    good_soft="#e2f5ec",
    idle="#526071",
    idle_soft="#edf0f4",
)

DARK = Theme(
    name="dark",
    page="#0c1118",
    surface="#151d28",
    sunken="#0f161f",
    text="#e7edf5",
    muted="#9fadbf",
    border="#2b3747",
    grid="#243040",
    accent="#76b6ff",
    accent_soft="#17304d",
    on_accent="#08131f",
    series="#76b6ff",
    envelope="rgba(118,182,255,0.22)",
    nan="#f19be3",
    pos_inf="#f7b45c",
    neg_inf="#58d5c9",
    action="#b9a5ff",
    critical="#ff9189",
    critical_soft="#421c1d",
    warning="#f5c463",
    warning_soft="#3c2d10",
    info="#8fc0ff",
    info_soft="#182f4b",
    good="#67d9a2",
    good_soft="#143427",
    idle="#9fadbf",
    idle_soft="#212c3a",
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def pick(name: object) -> Theme:
    """The theme of that name; the light one for anything else that a browser may say."""
    return THEMES.get(name, LIGHT) if isinstance(name, str) else LIGHT


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


def css_variables() -> str:
    """Both palettes as CSS custom properties; ``data-theme`` on the root element chooses."""
    return "\n".join(f'[data-theme="{theme.name}"] {{ {_declarations(theme)} }}' for theme in THEMES.values())


def _declarations(theme: Theme) -> str:
    colours = {f.name.replace("_", "-"): getattr(theme, f.name) for f in fields(theme) if f.name != "name"}
    return " ".join(f"--{name}: {value};" for name, value in colours.items()) + f" color-scheme: {theme.name};"
