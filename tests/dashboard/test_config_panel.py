from __future__ import annotations

import math

from rlvitals_dashboard.config_panel import ROWS_MAX, config_panel, flat
from tests.dashboard.test_components import said


def test_nested_settings_have_dotted_names_and_values_that_are_told_apart() -> None:
    config = {
        "beta": 0.1,
        "trainer": {"a": {"b": math.nan, "c": math.inf, "d": -math.inf}, "none": None, "on": True, "empty": {}},
        "many": [1, 2.5, "x"],
        "api_key": "(removed)",
    }
    rows = {name: said(value) for name, value in flat(config)}
    assert rows == {
        "beta": "0.1",
        "trainer.a.b": "NaN",
        "trainer.a.c": "+Inf",
        "trainer.a.d": "−Inf",
        "trainer.none": "not set",
        "trainer.on": "true",
        "many": "1, 2.5, x",
        "api_key": "(removed)",
    }


def test_a_run_that_told_nothing_has_no_panel_and_a_long_list_is_cut() -> None:
    assert config_panel({}) is None
    words = said(config_panel({f"k{i}": i for i in range(ROWS_MAX + 5)}))
    assert "5 more settings not shown" in words


def test_words_of_a_configuration_are_shown_as_text() -> None:
    words = said(config_panel({"<script>\u202e": "\x1b[31m<b>"}))
    assert "<script>[U+202E]" in words
    assert "[U+001B][31m<b>" in words
