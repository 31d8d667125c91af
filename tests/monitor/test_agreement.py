"""Live judging, replay of a log, back-test and rule test say the same of the same series, change by change."""

from __future__ import annotations

import json
import math
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlvitals.contract.alert import AlertState
from rlvitals_monitor.alerts.engine import advance
from rlvitals_monitor.alerts.replay import Episode, episodes, replay
from rlvitals_monitor.alerts.scenario import read_scenarios
from rlvitals_monitor.backtest import backtest
from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.replay import replay_log
from rlvitals_monitor.rules.loader import load_rules
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.runs import find_attempt
from tests.monitor.batches import NOW, batch, step

Column = list[float | None]
LEVELS = {
    "gradient.norm": st.sampled_from([0.5, 0.0, 60.0, math.nan, math.inf]),
    "length.truncation_rate": st.sampled_from([0.1, 0.95, 1.0]),
    "kl.capped": st.sampled_from([0.01, 2.0, math.nan, -math.inf]),
    "reward.zero_std_groups": st.sampled_from([0.4, 1.0]),
    "reward.mean": st.sampled_from([0.5, 0.8, math.nan]),
    "rewards/accuracy/mean": st.sampled_from([0.5, 0.1, math.inf]),
}
Told = list[tuple[str, str, int, int | None]]


@st.composite
def series(draw: st.DrawFn) -> dict[str, Column]:
    """Forty to sixty steps, more than a log that counts as short; values hold for a while, some are missing."""
    count = draw(st.integers(40, 60))
    found: dict[str, Column] = {}
    for name, level in LEVELS.items():
        column: Column = []
        while len(column) < count:
            value = draw(st.one_of(level, level, level, st.none()))
            column += [value] * draw(st.integers(1, 12))
        found[name] = column[:count]
    return found


def rows(columns: dict[str, Column]) -> list[dict[str, float]]:
    count = len(next(iter(columns.values())))
    found = [
        {name: column[at] for name, column in columns.items() if column[at] is not None} for at in range(count)
    ]
    return [{name: value for name, value in row.items() if value is not None} for row in found]


def told(found: list[Episode]) -> Told:
    return sorted((e.alert, e.severity.value, e.fired, e.resolved) for e in found)


def live(store: Store, run: str, columns: dict[str, Column], cuts: list[int]) -> Told:
    """As the collector stores and the worker judges it: in batches, the memory written and read between them."""
    reports = [step(place, place, row) for place, row in enumerate(rows(columns), 1)]
    open_at: dict[tuple[str, str], int] = {}
    found: Told = []
    for start, end in zip([0, *cuts], [*cuts, len(reports)], strict=True):
        with store.begin() as connection:
            store_batch(connection, batch(*reports[start:end], run=run), NOW)
            number, _ = find_attempt(connection, run, None)
            changes = advance(connection, number, load_rules(), NOW).transitions
        for change in changes:
            key = change.alert.rule, change.alert.severity.value
            if change.after is AlertState.FIRING:
                open_at[key] = change.step
            elif change.after is AlertState.RESOLVED and key in open_at:
                found.append((*key, open_at.pop(key), change.step))
    return sorted([*found, *((*key, fired, None) for key, fired in open_at.items())])


def as_scenario(columns: dict[str, Column]) -> Told:
    words = {None: "_"}
    spelt = {
        name: " ".join(words.get(v, "") if v is None else _spell(v) for v in column)
        for name, column in columns.items()
    }
    text = json.dumps({"scenarios": [{"name": "x", "series": spelt, "alerts": []}]})
    (scenario,) = read_scenarios(text, "x")
    return told(episodes(replay(load_rules(), scenario.steps, {})))


def _spell(value: float) -> str:
    return (
        "NaN" if value != value else "Inf" if value == math.inf else "-Inf" if value == -math.inf else f"{value:g}"
    )


def as_log(columns: dict[str, Column], folder: Path) -> Told:
    log = folder / "run.jsonl"
    names = list(columns)
    lines = [
        json.dumps({"step": at + 1, **{name: columns[name][at] for name in names}})
        for at in range(len(columns[names[0]]))
    ]
    log.write_text("\n".join(lines))
    return told(list(replay_log(read_past_run(log), load_rules()).episodes))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=series(), data=st.data())
def test_live_replay_back_test_and_rule_test_agree(
    store: Store, tmp_path: Path, columns: dict[str, Column], data: st.DataObject
) -> None:
    run = f"run-{len(list(tmp_path.iterdir()))}"
    (tmp_path / run).mkdir()
    count = len(rows(columns))
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=4)))
    seen = live(store, run, columns, cuts)
    assert as_scenario(columns) == seen
    assert as_log(columns, tmp_path / run) == seen
    assert told(backtest(store, run, load_rules())) == seen
