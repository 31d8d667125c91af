"""A million steps × ten metrics in a real browser: first paint, zooms, and whether what was planted is seen."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright
from sqlalchemy import insert, text

from rlvitals.contract.report import ReportBatch, RunInfo, StepReport
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.collector import collect
from rlvitals_monitor.document import Document
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store import rollups as rolling
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.numbers import split
from rlvitals_monitor.store.tables import points, rollups
from tests.dashboard.conftest import CHROMIUM, CHROMIUM_FLAGS
from tests.dashboard.house import House, now_utc

STEPS = int(os.environ.get("BENCH_STEPS", "1000000"))
METRICS = (
    "reward.mean",
    "length.mean",
    "length.truncation_rate",
    "kl.k3",
    "kl.pull_ratio",
    "kl.grad_norm",
    "policy.loss",
    "policy.entropy",
    "gradient.norm",
    "ratio.max",
)
SPIKE, NAN = STEPS // 8 - 1, STEPS // 3 + 7
RUN = "million"
REPEATS = 4
PATIENCE_MS = 240_000
ROWS_A_WRITE = 50_000
OWNER = Principal(name="owner", scopes=frozenset({"admin"}))

_BROWSER = """
window.bench = {
    charts() {
        const all = document.querySelectorAll('figure.chart:not(.heat) .js-plotly-plot');
        return [...all].filter((gd) => gd._fullLayout);
    },
    line(gd, name) { return gd.data.find((t) => t.name === name); },
    drawn(steps, from, to) {
        return this.charts().length >= 10 && this.charts().every((gd) => {
            const x = this.line(gd, 'value').x;
            const [low, high] = gd._fullLayout.xaxis.range;
            if (from === null) return x.length && x[x.length - 1] - x[0] > 0.9 * steps;
            return x.length && low === from && high === to;
        });
    },
    zoom(steps, from, to) {
        return new Promise((done) => {
            const began = performance.now();
            window.dash_clientside.set_props('view', { data: { ...window.vitalsRun.view(), from, to } });
            const look = () => this.drawn(steps, from, to)
                ? done(performance.now() - began) : requestAnimationFrame(look);
            requestAnimationFrame(look);
        });
    },
    seen() {
        const gd = this.charts()[0];
        const high = this.line(gd, 'greatest').y.length ? this.line(gd, 'greatest').y : this.line(gd, 'value').y;
        return [Math.max(...high.filter((v) => v !== null)), this.line(gd, 'NaN').x];
    },
};
"""


def main() -> None:
    if not CHROMIUM.exists():
        print(f"left out: {CHROMIUM} is not there")
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder) / "home", database_url=f"sqlite:///{folder}/rlvitals.db")
        with House(settings) as house:
            plant(house.store)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.add_init_script(_BROWSER)
                page.goto(f"{house.url}{house.login}")
                _look(page, f"{house.url}/ui/run/{RUN}")
                browser.close()


def plant(store: Store) -> None:
    """One metric is written point by point, the others are copies of it; its last step comes by the collector."""
    values = dict.fromkeys(METRICS, 0.5)
    last = (StepReport(seq=1, step=STEPS - 1, time_s=now_utc().timestamp(), values=values),)
    batch = ReportBatch(run=RunInfo(id=RUN), attempt="a1", writer="w", steps=last)
    collect(store, Document(batch=batch), OWNER, now_utc())
    with store.begin() as connection:
        numbers = connection.scalars(text("SELECT number FROM series ORDER BY number")).all()
        for table in ("points", "rollups"):
            connection.execute(text(f"DELETE FROM {table} WHERE series > {numbers[0]}"))
    first = numbers[0]
    for start in range(0, STEPS - 1, ROWS_A_WRITE):
        rows = {(first, step): _value(step) for step in range(start, min(start + ROWS_A_WRITE, STEPS - 1))}
        with store.begin() as connection:
            told = [(number, step, *split(value)) for (number, step), value in rows.items()]
            names = ("series", "step", "value", "kind")
            connection.execute(insert(points), [dict(zip(names, row, strict=True)) for row in told])
            rolling.add(connection, rows)
    with store.begin() as connection:
        for table in (points, rollups):
            columns = ", ".join(c.name for c in table.columns if c.name != "series")
            for number in numbers[1:]:
                copy = f"INSERT INTO {table.name} (series, {columns}) SELECT {number}, {columns} FROM {table.name}"
                connection.execute(text(f"{copy} WHERE series = {first}"))


def _value(step: int) -> float:
    if step == NAN:
        return math.nan
    return 1e6 if step == SPIKE else 0.5 + 0.4 * math.sin(step / 9_000) + (step * 2_654_435_761 % 1000) / 5_000


def _look(page: Page, url: str) -> None:
    first = [_first_paint(page, url) for _ in range(REPEATS)]
    _row("first paint, nothing in the browser's cache", first[:1], "1,500")
    _row("first paint", first[1:], "1,500")
    zooms: dict[str, list[float]] = {}
    lost: list[str] = []
    for width in (STEPS * 3 // 4, STEPS // 4, STEPS // 20, STEPS // 200, 2_000, 200):
        for centre in (SPIKE, NAN):
            start = min(max(centre - width // 3, 0), STEPS - width - 1)
            taken = _zoom(page, start, start + width)
            zooms.setdefault(f"zoom to {width:,} steps", []).append(taken)
            lost += _unseen(page, start, start + width)
    _zoom(page, None, None)
    lost += _unseen(page, 0, STEPS)
    for name, taken_ms in zooms.items():
        _row(name, taken_ms, "300")
    print(f"planted spike and NaN: {'seen at every zoom' if not lost else 'NOT SEEN: ' + ', '.join(lost)}")
    if lost:
        raise AssertionError("what was planted is not in the figure")


def _first_paint(page: Page, url: str) -> float:
    page.goto(url)
    page.wait_for_function(
        "(steps) => window.bench.drawn(steps, null)", arg=STEPS, polling="raf", timeout=PATIENCE_MS
    )
    taken = float(page.evaluate("performance.now()"))
    page.wait_for_function("() => window.vitalsRun.view() !== null", timeout=PATIENCE_MS)
    return taken


def _zoom(page: Page, first: int | None, last: int | None) -> float:
    """Until all ten charts show it, in ms."""
    return float(page.evaluate("(asked) => window.bench.zoom(...asked)", [STEPS, first, last]))


def _unseen(page: Page, first: int, last: int) -> list[str]:
    greatest, nans = page.evaluate("window.bench.seen()")
    missing = [] if (greatest == 1e6) == (first <= SPIKE <= last) else [f"spike in {first}…{last}"]
    return missing + ([] if (NAN in nans) == (first <= NAN <= last) else [f"NaN in {first}…{last}"])


def _row(name: str, taken_ms: Sequence[Any], bound: str) -> None:
    print(
        f"{name:48} median {statistics.median(taken_ms):7,.0f} ms  most {max(taken_ms):7,.0f} ms  (bound {bound})"
    )
