"""A million steps × ten metrics in a real browser: first paint, zooms, and whether what was planted is seen."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
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
WIDTHS = (STEPS * 3 // 4, STEPS // 4, STEPS // 20, STEPS // 200, 2_000, 200)
VIEWPORT: Any = {"width": 1440, "height": 900}
REPEATS = 5
SETTLE_MS = 1_000
LOOK_MS = 400
"""Between two zooms, for a person looks at what came."""
PATIENCE_MS = 240_000
ROWS_A_WRITE = 50_000
OWNER = Principal(name="owner", scopes=frozenset({"admin"}))

_BROWSER = """
window.bench = {
    all() {
        const cards = [...document.querySelectorAll('figure.chart:not(.heat)')];
        return cards.map((card) => card.querySelector('.js-plotly-plot'));
    },
    inSight(gd) {
        const box = gd && gd.closest('figure').getBoundingClientRect();
        return box && box.bottom > 0 && box.top < innerHeight;
    },
    line(gd, name) { return gd.data.find((t) => t.name === name); },
    // Its axis has the steps that are asked for, and its points are of these steps and reach over them.
    shows(gd, steps, from, to) {
        if (!gd || !gd._fullLayout || !gd.data) return false;
        const x = this.line(gd, 'value').x, { bucket } = this.line(gd, 'value').meta;
        if (!x.length) return false;
        const [first, last] = [x[0], x[x.length - 1]], [low, high] = from === null ? [0, steps - 1] : [from, to];
        const range = gd._fullLayout.xaxis.range, drawn = gd.querySelector('.scatterlayer .js-line');
        return drawn && (from === null || (range[0] === from && range[1] === to))
            && first >= low - bucket && first <= low + bucket && last <= high + bucket && last >= high - bucket;
    },
    drawn(steps, from, to, every) {
        const all = this.all(), some = all.filter((gd) => every || this.inSight(gd));
        return all.length >= 10 && some.every((gd) => this.shows(gd, steps, from, to));
    },
    // As a drag across the first chart ends; until the frame after the one in which all are drawn.
    zoom(steps, from, to) {
        return new Promise((done) => {
            const began = performance.now(), taken = [], gd = this.all()[0];
            const look = () => {
                if (!taken.length && this.drawn(steps, from, to, false)) taken.push(performance.now() - began);
                if (taken.length && this.drawn(steps, from, to, true)) done([...taken, performance.now() - began]);
                else requestAnimationFrame(look);
            };
            const whole = { 'xaxis.autorange': true }, part = { 'xaxis.range[0]': from, 'xaxis.range[1]': to };
            window.Plotly.relayout(gd, from === null ? whole : part);
            requestAnimationFrame(() => requestAnimationFrame(look));
        });
    },
    seen() {
        return this.all().map((gd) => {
            const most = this.line(gd, 'greatest').y;
            const high = most.length ? most : this.line(gd, 'value').y;
            return [Math.max(...high.filter((v) => v !== null)), this.line(gd, 'NaN').x];
        });
    },
};
"""


def main() -> None:
    if not CHROMIUM.exists():
        print(f"left out: {CHROMIUM} is not there")
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        settings = Settings(home=Path(folder) / "home", database_url=f"sqlite:///{folder}/rlvitals.db")
        house = stack.enter_context(House(settings))
        began = time.monotonic()
        plant(house.store)
        print(f"{STEPS:,} steps x {len(METRICS)} metrics, written in {time.monotonic() - began:.0f} s")
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
        stack.callback(browser.close)
        page = _known_page(browser, house, None)
        known = page.context.storage_state()
        url = f"{house.url}/ui/run/{RUN}"
        cold = [_alone(_known_page(browser, house, known), url) for _ in range(REPEATS)]
        _row("first paint, nothing in the browser's cache", cold, "1,500")
        _look(page, url)


def _known_page(browser: Browser, house: House, known: Any) -> Page:
    """In a browser with nothing in its cache, signed in."""
    page = browser.new_context(viewport=VIEWPORT, storage_state=known).new_page()
    page.add_init_script(_BROWSER)
    if known is None:
        page.goto(f"{house.url}{house.login}")
    return page


def _alone(page: Page, url: str) -> float:
    """Without the pages before it, which would go on asking the service."""
    try:
        return _first_paint(page, url)
    finally:
        page.context.close()


def plant(store: Store) -> None:
    """One metric is written point by point, the others are copies of it; the collector gets both ends."""
    values = dict.fromkeys(METRICS, 0.5)
    ends = tuple(
        StepReport(seq=seq, step=step, time_s=now_utc().timestamp(), values=values)
        for seq, step in ((1, 0), (2, STEPS - 1))
    )
    batch = ReportBatch(run=RunInfo(id=RUN), attempt="a1", writer="w", steps=ends)
    collect(store, Document(batch=batch), OWNER, now_utc())
    with store.begin() as connection:
        numbers = connection.scalars(text("SELECT number FROM series ORDER BY number")).all()
        for table in ("points", "rollups"):
            connection.execute(text(f"DELETE FROM {table} WHERE series > {numbers[0]}"))
    first = numbers[0]
    for start in range(1, STEPS - 1, ROWS_A_WRITE):
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
    _first_paint(page, url)
    _row("first paint", [_first_paint(page, url) for _ in range(REPEATS)], "1,500")
    in_sight: list[float] = []
    every: list[float] = []
    lost: list[str] = []
    for width in WIDTHS:
        taken = []
        for centre, share in product((SPIKE, NAN), (2, 3)):
            start = min(max(centre - width // share, 0), STEPS - width - 1)
            taken.append(_zoom(page, start, start + width))
            page.wait_for_timeout(LOOK_MS)
            lost += _unseen(page, start, start + width)
        _row(f"zoom to {width:,} steps", [one for one, _ in taken], "300")
        in_sight += [one for one, _ in taken]
        every += [one for _, one in taken]
        page.wait_for_timeout(SETTLE_MS)
    whole = _zoom(page, None, None)
    lost += _unseen(page, 0, STEPS)
    _row("back to the whole run", whole[:1], "300")
    _row(f"all {len(in_sight)} zooms", [*in_sight, whole[0]], "300")
    _row("the charts out of sight are drawn after", [*every, whole[1]], "-")
    print(f"planted spike and NaN: {'seen at every zoom' if not lost else 'NOT SEEN: ' + ', '.join(lost)}")
    if lost:
        raise AssertionError("what was planted is not in the figure")


def _first_paint(page: Page, url: str) -> float:
    """From the start of the navigation until all charts in sight are drawn, in ms."""
    page.goto(url)
    page.wait_for_function(
        "(steps) => window.bench.drawn(steps, null, null, false)", arg=STEPS, polling="raf", timeout=PATIENCE_MS
    )
    taken = float(page.evaluate("performance.now()"))
    page.wait_for_function("() => window.vitalsRun.view() !== null", timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLE_MS)
    return taken


def _zoom(page: Page, first: int | None, last: int | None) -> tuple[float, float]:
    """Until the charts in sight, and until all charts of the page show the points of these steps, in ms."""
    in_sight, every = page.evaluate("(asked) => window.bench.zoom(...asked)", [STEPS, first, last])
    return in_sight, every


def _unseen(page: Page, first: int, last: int) -> list[str]:
    lost = []
    for greatest, nans in page.evaluate("window.bench.seen()"):
        lost += [] if (greatest == 1e6) == (first <= SPIKE <= last) else [f"spike in {first}…{last}"]
        lost += [] if (NAN in nans) == (first <= NAN <= last) else [f"NaN in {first}…{last}"]
    return lost


def _row(name: str, taken_ms: Sequence[float], bound: str) -> None:
    middle, most = statistics.median(taken_ms), max(taken_ms)
    print(
        f"{name:44} p50 {middle:7,.0f} ms  worst {most:7,.0f} ms  of {len(taken_ms)}  (bound {bound})", flush=True
    )
