from __future__ import annotations

import math
from itertools import combinations

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.command import CommandState, Policy
from rlvitals.contract.hooks import HookState
from rlvitals.contract.view import Light, RunState, SilenceState
from rlvitals_dashboard import theme
from rlvitals_dashboard.palettes import DARK, DARK_SAFE, LIGHT, LIGHT_SAFE, THEMES, Theme

AA = 4.5
AA_GRAPHICS = 3.0


def _luminance(colour: str) -> float:
    red, green, blue = _linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", THEMES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize(
    "text", ["text", "muted", "accent", "critical", "warning", "info", "good", "nan", "pos_inf", "neg_inf"]
)
def test_text_is_readable_on_every_surface(palette: Theme, text: str) -> None:
    for surface in (palette.page, palette.surface, palette.sunken):
        assert contrast(getattr(palette, text), surface) >= AA


@pytest.mark.parametrize("palette", THEMES.values(), ids=lambda p: p.name)
@pytest.mark.parametrize("tone", ["critical", "warning", "info", "good", "idle"])
def test_a_badge_and_the_text_in_its_card_are_readable(palette: Theme, tone: str) -> None:
    soft = getattr(palette, f"{tone}_soft")
    assert contrast(getattr(palette, tone), soft) >= AA
    assert contrast(palette.text, soft) >= AA
    assert contrast(palette.muted, soft) >= AA


@pytest.mark.parametrize("palette", THEMES.values(), ids=lambda p: p.name)
def test_a_primary_button_and_the_lines_of_a_chart_are_seen(palette: Theme) -> None:
    assert contrast(palette.on_accent, palette.accent) >= AA
    for line in (palette.series, palette.nan, palette.pos_inf, palette.neg_inf, palette.action):
        assert contrast(line, palette.surface) >= AA_GRAPHICS


def _linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


SIGHT = {
    "full": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What is seen of linear RGB: Machado, Oliveira and Fernandes, 2009, at full severity."""


def _lab(colour: str, sight: str) -> tuple[float, float, float]:
    """CIE L*a*b* of the colour as it is seen."""
    red, green, blue = (
        min(1.0, max(0.0, sum(a * b for a, b in zip(row, _linear(colour), strict=True)))) for row in SIGHT[sight]
    )
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def apart(one: str, other: str, sight: str) -> float:
    """How far apart two colours look; 2.3 is just noticeable side by side."""
    return math.dist(_lab(one, sight), _lab(other, sight))


@pytest.mark.parametrize("palette", [LIGHT_SAFE, DARK_SAFE], ids=lambda p: p.name)
@pytest.mark.parametrize("sight", SIGHT)
def test_people_of_any_colour_vision_tell_the_tones_of_a_safe_palette_apart(palette: Theme, sight: str) -> None:
    tones = [palette.critical, palette.warning, palette.info, palette.good]
    assert min(apart(a, b, sight) for a, b in combinations(tones, 2)) >= 25


def test_the_measure_knows_what_is_hard_to_tell_apart() -> None:
    assert apart(LIGHT.critical, LIGHT.warning, "deuteranopia") < 10
    assert apart(LIGHT.critical, LIGHT.warning, "full") > 25


def test_a_safe_palette_is_light_or_dark_like_the_one_that_it_comes_from() -> None:
    assert [(one.name, one.base) for one in THEMES.values()] == [
        ("light", "light"),
        ("dark", "dark"),
        ("light-safe", "light"),
        ("dark-safe", "dark"),
    ]
    assert theme.css_variables().count("color-scheme: dark;") == 2


def test_severities_and_lights_differ_by_shape_and_word_and_not_by_colour_alone() -> None:
    tables = (theme.SEVERITIES, theme.LIGHTS, theme.HOOK_STATES, theme.SILENCE_STATES, theme.POLICIES)
    for looks in (table.values() for table in (*tables, theme.VERDICTS, theme.TURNS, theme.DELIVERY_STATES)):
        assert len({look.mark for look in looks}) == len(looks)
        assert len({look.word for look in looks}) == len(looks)


def test_every_state_has_a_look() -> None:
    assert set(theme.SEVERITIES) == set(Severity)
    assert set(theme.LIGHTS) == set(Light)
    assert set(theme.HOOK_STATES) == set(HookState)
    assert set(theme.RUN_STATES) == set(RunState)
    assert set(theme.COMMAND_STATES) == set(CommandState)
    assert set(theme.ALERT_STATES) == set(AlertState)
    assert set(theme.POLICIES) == set(Policy)
    assert set(theme.SILENCE_STATES) == set(SilenceState)


def test_an_unknown_theme_is_the_light_one() -> None:
    assert theme.pick("dark") is DARK
    assert theme.pick("<script>") is LIGHT
    assert theme.pick(None) is LIGHT


def test_the_style_sheet_uses_no_colour_that_the_palette_does_not_have() -> None:
    import re
    from pathlib import Path

    sheet = (Path(theme.__file__).parent / "assets" / "vitals.css").read_text()
    known = set(re.findall(r"--([a-z-]+):", theme.css_variables())) | {"tone", "tone-soft"}
    used = set(re.findall(r"var\(--([a-z-]+)", sheet))
    assert used <= known
