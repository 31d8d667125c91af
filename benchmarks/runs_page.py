"""1,000 runs on one page: the store, the API, the first paint, and what one run that moved costs the browser."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from rlvitals.contract.report import Heartbeat, Phase, ReportBatch, RunInfo, StepReport
from rlvitals_dashboard.runs_row import row_of
from rlvitals_monitor.settings import Settings
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.ingest import store_batch
from rlvitals_monitor.store.run_list import Order, OrderBy, RunFilter, list_runs
from tests.dashboard.conftest import CHROMIUM, CHROMIUM_FLAGS
from tests.dashboard.house import House, now_utc

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
STEPS = 64
REPEATS = 5
PATIENCE_MS = 120_000
MOVED = f"run-{RUNS // 2:05d}"
WORST_FIRST = Order(by=OrderBy.LIGHT, falling=True)
_WATCH = """
window.redrawn = 0;
new MutationObserver((all) => {
  for (const one of all) for (const node of one.addedNodes) if (node.tagName === 'TR') window.redrawn += 1;
}).observe(document.querySelector('.runs-table'), { childList: true, subtree: true });
"""
_STEP_SHOWN = "([run, step]) => document.querySelector(`[data-run='${run}'] .of-step`).textContent === step"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = os.environ.get("BENCH_DATABASE_URL", f"sqlite:///{folder}/rlvitals.db")
        with House(Settings(home=Path(folder) / "home", database_url=url)) as house:
            for number in range(RUNS):
                report(house.store, f"run-{number:05d}", number, STEPS)
            print(f"{RUNS:,} runs of {STEPS} steps on {house.store.engine.dialect.name}")
            _read(house)
            if CHROMIUM.exists():
                _look(house)


def report(store: Store, run: str, number: int, last: int) -> None:
    """Steps 1 to ``last`` of a run, as one batch that came just now."""
    now = now_utc()
    info = RunInfo(
        id=run,
        project=f"project-{number % 7}",
        name=f"qwen3-8b grpo, seed {number}",
        framework=("trl", "verl", "openrlhf", "slime")[number % 4],
        model="Qwen3-8B",
        config={f"setting_{i}": i for i in range(150)} | {"world_size": 8},
        tags=("lr 1e-6", "group 16"),
    )
    steps = tuple(
        StepReport(seq=at, step=at, time_s=now.timestamp() - 5 * (last - at), values={"kl.coef": 0.05})
        for at in range(max(1, last - STEPS + 1), last + 1)
    )
    phase = Phase.UPDATE if run == MOVED else Phase.FINISHED  # what is over does not change while one looks
    life = Heartbeat(time_s=now.timestamp(), phase=phase, last_step=last)
    with store.begin() as connection:
        store_batch(connection, ReportBatch(run=info, attempt="a1", steps=steps, heartbeat=life), now)


def _read(house: House) -> None:
    def read(wanted: RunFilter) -> list[Any]:
        with house.store.read() as connection:
            return list_runs(connection, now_utc(), wanted, order=WORST_FIRST, limit=RUNS)[0]

    runs = read(RunFilter())
    since = RunFilter(seen_since=now_utc())
    _timed("store: all runs, the worst first", lambda: read(RunFilter()))
    _timed("store: those that spoke since the last beat (none)", lambda: read(since))
    _timed("dashboard: rows for the browser", lambda: [row_of(run, "/ui/") for run in runs])
    _timed("API: GET /runs, the worst first", lambda: house.get(f"/runs?sort=-light&limit={min(RUNS, 1000)}"))
    recent = (now_utc() - timedelta(seconds=0.2)).isoformat().replace("+00:00", "Z")
    _timed("API: GET /runs, spoke since", lambda: house.get(f"/runs?sort=-light&seen_since={recent}"))


def _timed(what: str, act: Callable[[], object]) -> None:
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        act()
        taken.append((time.perf_counter() - began) * 1000)
    print(f"  {what}: median {statistics.median(taken):.0f} ms, best {min(taken):.0f} ms")


def _look(house: House) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(CHROMIUM_FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{house.url}{house.login}")
        page.goto(f"{house.url}/ui/")
        _shown(page, RUNS)
        _timed("browser: first paint of all rows", lambda: (page.goto(f"{house.url}/ui/"), _shown(page, RUNS)))
        page.evaluate(_WATCH)
        taken = []
        for step in range(STEPS + 1, STEPS + 1 + REPEATS):
            began = time.perf_counter()
            report(house.store, MOVED, RUNS // 2, step)
            house.app.state.live.publish(MOVED)
            page.wait_for_function(_STEP_SHOWN, arg=[MOVED, str(step)])
            taken.append((time.perf_counter() - began) * 1000)
        print(f"  browser: a run moved → its row: median {statistics.median(taken):.0f} ms")
        print(f"  browser: rows drawn anew for {REPEATS} moves of one run: {page.evaluate('window.redrawn')}")
        began = time.perf_counter()
        page.get_by_label("Search").fill("seed 77")
        page.wait_for_function(f"document.querySelectorAll('tr.run').length < {RUNS}")
        print(f"  browser: words typed → rows that fit: {(time.perf_counter() - began) * 1000:.0f} ms")
        browser.close()


def _shown(page: Page, count: int) -> None:
    page.wait_for_function(f"document.querySelectorAll('tr.run').length >= {min(count, 1000)}")


if __name__ == "__main__":
    main()
