from __future__ import annotations

import pytest

from rlvitals.contract.alert import AlertState, Severity
from rlvitals.contract.command import CommandState, Policy
from rlvitals.contract.hooks import HookState
from rlvitals.contract.view import Light, RunState, SilenceState
from rlvitals_dashboard import theme
from rlvitals_dashboard.theme import DARK, LIGHT, Theme

AA = 4.5
AA_GRAPHICS = 3.0


def _luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "text", ["text", "muted", "accent", "critical", "warning", "info", "good", "nan", "pos_inf", "neg_inf"]
)
def test_text_is_readable_on_every_surface(palette: Theme, text: str) -> None:
    for surface in (palette.page, palette.surface, palette.sunken):
        assert contrast(getattr(palette, text), surface) >= AA


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda p: p.name)
@pytest.mark.parametrize("tone", ["critical", "warning", "info", "good", "idle"])
def test_a_badge_and_the_text_in_its_card_are_readable(palette: Theme, tone: str) -> None:
    soft = getattr(palette, f"{tone}_soft")
    assert contrast(getattr(palette, tone), soft) >= AA
    assert contrast(palette.text, soft) >= AA
    assert contrast(palette.muted, soft) >= AA


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=lambda p: p.name)
def test_a_primary_button_and_the_lines_of_a_chart_are_seen(palette: Theme) -> None:
    assert contrast(palette.on_accent, palette.accent) >= AA
    for line in (palette.series, palette.nan, palette.pos_inf, palette.neg_inf, palette.action):
        assert contrast(line, palette.surface) >= AA_GRAPHICS


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
