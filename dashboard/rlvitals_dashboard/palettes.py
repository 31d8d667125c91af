"""The palettes: light and dark, and both again in colours that people of any colour vision tell apart.

Every text colour reaches WCAG AA (4.5:1) on the surfaces that it is used on. In the ``-safe`` palettes the tones
stay apart as seen with protanopia, deuteranopia and tritanopia as well. Tests hold both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from rlvitals.contract.alert import Severity


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

    @property
    def base(self) -> str:
        """``light`` or ``dark``."""
        return self.name.partition("-")[0]

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

LIGHT_SAFE = replace(
    LIGHT,
    name="light-safe",
    nan="#8a2f6b",
    pos_inf="#8a5a00",
    neg_inf="#00707a",
    critical="#7a0f2a",
    critical_soft="#fbe9ee",
    warning="#6e610c",
    warning_soft="#fbf5d6",
    info="#30205e",
    info_soft="#eeebf8",
    good="#0052cc",
    good_soft="#e4eefc",
)

DARK_SAFE = replace(
    DARK,
    name="dark-safe",
    critical="#ff5c6c",
    critical_soft="#3d1a20",
    warning="#ffc31f",
    warning_soft="#38300f",
    info="#a48bea",
    info_soft="#261f3d",
    good="#b8f1ff",
    good_soft="#11333c",
)

THEMES = {theme.name: theme for theme in (LIGHT, DARK, LIGHT_SAFE, DARK_SAFE)}


def pick(name: object) -> Theme:
    """The theme of that name; the light one for anything else that a browser may say."""
    return THEMES.get(name, LIGHT) if isinstance(name, str) else LIGHT


def css_variables() -> str:
    """All palettes as CSS custom properties; ``data-theme`` on the root element chooses."""
    return "\n".join(f'[data-theme="{theme.name}"] {{ {_declarations(theme)} }}' for theme in THEMES.values())


def _declarations(theme: Theme) -> str:
    colours = {f.name.replace("_", "-"): getattr(theme, f.name) for f in fields(theme) if f.name != "name"}
    return " ".join(f"--{name}: {value};" for name, value in colours.items()) + f" color-scheme: {theme.base};"
