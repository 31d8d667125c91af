from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder

from rlvitals.contract.hooks import HookState, HooksView, HookTableView, HookView
from rlvitals.contract.view import EventView
from rlvitals_dashboard.hook_panel import checkpoint_panel, hook_panel
from rlvitals_dashboard.theme import HOOK_STATES
from tests.dashboard.test_components import said

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)


def hook(name: str, state: HookState, **other: Any) -> HookView:
    told = {"target": f"PPOTrainer.{name}", "gives": f"what {name} gives"} | other
    return HookView(hook=name, state=state, **told)


def hooks(*rows: HookView, well: bool = True, summary: str = "7 of 7 hooks see", **other: Any) -> HooksView:
    table = HookTableView(attempt="a1", writer="main", at=NOW, framework="verl", version="0.9.1", hooks=rows)
    return HooksView(run="r", attempt="a1", well=well, summary=summary, tables=(table,), **other)


def test_a_client_without_hooks_gets_no_panel() -> None:
    assert hook_panel(HooksView(run="r", attempt="a1", well=True, summary="none")) is None


def test_while_all_is_well_one_line_says_so_and_the_rest_is_folded() -> None:
    component = hook_panel(hooks(hook("batch", HookState.SEEN, seen=12)))
    assert component.open is False
    assert said(component.children[0]) == "●Hooks7 of 7 hooks see"
    assert "seen 12 times" in said(component)


@pytest.mark.parametrize("state", list(HookState))
def test_each_state_has_its_word_its_reason_and_what_is_missing(state: HookState) -> None:
    words = said(hook_panel(hooks(hook("batch", state, why="no such method", gives="rewards"), well=False)))
    for word in (HOOK_STATES[state].word, "PPOTrainer.batch", "no such method", "gives rewards", "verl 0.9.1"):
        assert word in words


def test_what_is_wrong_stands_open_with_what_to_do() -> None:
    component = hook_panel(
        hooks(hook("a", HookState.BLIND), well=False, summary="0 of 1", advice="Run the doctor.")
    )
    assert component.open is True
    assert "What to do: Run the doctor." in said(component)


def test_an_absence_that_costs_nothing_is_told_as_such() -> None:
    assert "Absent, not needed" in said(hook_panel(hooks(hook("dump", HookState.ABSENT, optional=True))))


def test_several_writers_are_told_apart() -> None:
    one = hooks(hook("a", HookState.SEEN))
    two = replace(one, tables=(*one.tables, replace(one.tables[0], writer="rank1")))
    assert "as rank1" in said(hook_panel(two))
    assert "as main" not in said(hook_panel(one))


def test_words_of_a_hook_are_shown_as_text_with_what_is_hidden_in_them() -> None:
    hostile = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
    rows = hook(hostile, HookState.FAILING, why=hostile, gives=hostile, target=hostile)
    component = hook_panel(hooks(rows, well=False, summary=hostile, advice=hostile))
    words = said(component)
    assert "\x1b" not in words
    assert "\u202e" not in words
    assert words.count("[U+202E]") == 6
    assert "dangerously" not in json.dumps(component, cls=PlotlyJSONEncoder)


def test_checkpoints_show_step_and_path_and_say_what_was_not_told() -> None:
    saved = [
        EventView(attempt="a1", at=NOW, kind="checkpoint", step=1200, payload={"folder": "/ckpt/<b>1200"}),
        EventView(attempt="a1", at=NOW, kind="checkpoint", payload={"folder": 7}),
    ]
    words = said(checkpoint_panel(saved))
    assert "step 1,200" in words
    assert "/ckpt/<b>1200" in words
    assert "step not told" in words
    assert "path not told" in words
    assert checkpoint_panel([]) is None
