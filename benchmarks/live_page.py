"""A page left open during 20 streaming runs: step end → pixel, the browser's memory, the service's CPU for a page.

One real browser and 9 clients on the page's own WebSocket, each with its own chain of beats. One run reports by
the real client, whose interval is part of the latency; 19 more are posted. ``BENCH_LIVE_MINUTES`` (3, in full 30),
``BENCH_DATABASE_URL`` (SQLite by default).
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import rlvitals
from benchmarks.live_sockets import PageSockets, capture_beat
from benchmarks.served import Served, serving

RUNS, SOCKETS, METRICS = 20, 9, 20
STEP_S = 1.0
IDLE_S = 20.0
MINUTES = float(os.environ.get("BENCH_LIVE_MINUTES", "3"))
WATCHED = "live0"
CHROMIUM = "/usr/bin/chromium"
FLAGS = ("--no-sandbox", "--headless", "--disable-gpu", "--enable-precise-memory-info", "--js-flags=--expose-gc")
WATCH = """
window.seen = {};
const look = () => {
  let last = -1;
  for (const chart of document.querySelectorAll('.js-plotly-plot'))
    for (const trace of chart.data || []) if (trace.x && trace.x.length) last = Math.max(last, trace.x.at(-1));
  if (last > (window.last ?? -1)) {
    window.last = last;
    requestAnimationFrame(() => { window.seen[last] = Date.now(); });
  }
  requestAnimationFrame(look);
};
look();
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as service:
        stream = Stream(service, Path(folder) / "spool")
        with stream.running():
            time.sleep(IDLE_S)
            before = service.cpu_s()
            time.sleep(IDLE_S)
            alone = (service.cpu_s() - before) / IDLE_S
            _watch(service, stream, alone)


class Stream:
    """20 runs that step once a second; ``ended`` is when each step of the watched one ended, in ms."""

    def __init__(self, service: Served, spool: Path) -> None:
        self._service, self._spool = service, spool
        self._ending = threading.Event()
        self.ended: dict[int, float] = {}

    def running(self) -> _Running:
        threads = [threading.Thread(target=work, daemon=True) for work in (self._report, self._post)]
        return _Running(threads, self._ending)

    def _report(self) -> None:
        run = rlvitals.init(
            run=WATCHED, url=self._service.url, token=self._service.token, spool=self._spool, mode="online"
        )
        step = 0
        while not self._ending.wait(STEP_S):
            step += 1
            run.report(step, _values(step))
            self.ended[step] = time.time() * 1000
        run.close()

    def _post(self) -> None:
        step = 0
        while not self._ending.wait(STEP_S / RUNS):
            number = 1 + step % (RUNS - 1)
            step += 1
            values = _values(step)
            body = {
                "run": {"id": f"live{number}"},
                "attempt": "a",
                "names": list(values),
                "rows": [[step, step // (RUNS - 1), time.time(), *values.values()]],
            }
            self._service.post("/api/v1/reports", body)


class _Running:
    def __init__(self, threads: Sequence[threading.Thread], ending: threading.Event) -> None:
        self._threads, self._ending = threads, ending

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(30)


def _values(step: int) -> dict[str, float]:
    named = {"reward.mean": math.tanh(step / 200), "kl.k3": 0.02, "policy.entropy": 1.0, "gradient.norm": 0.5}
    return named | {f"own.metric_{i}": math.sin(step / 10 + i) for i in range(METRICS - len(named))}


def _watch(service: Served, stream: Stream, alone: float) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(service.sign_in)
        beat = capture_beat(context, f"{service.url}/ui/run/{WATCHED}")
        cookies = {cookie["name"]: cookie["value"] for cookie in context.cookies()}
        with PageSockets(service.url, cookies, beat, SOCKETS) as sockets:
            page.goto(f"{service.url}/ui/run/{WATCHED}")
            page.wait_for_selector(".js-plotly-plot")
            page.evaluate(WATCH)
            heap = _Heap(context.new_cdp_session(page), service)
            heap.look(MINUTES)
            seen = {int(step): at for step, at in page.evaluate("window.seen").items()}
        browser.close()
    _report(stream, seen, heap, alone, sockets.beats)


class _Heap:
    """The page's live memory after a collection, and the service's CPU meanwhile."""

    def __init__(self, session: Any, service: Served) -> None:
        self._session, self._service = session, service
        self.bytes: list[float] = []
        self.cpu = 0.0
        session.send("Performance.enable")

    def look(self, minutes: float) -> None:
        beats = max(3, round(minutes * 2))
        self._measure()
        before, began = self._service.cpu_s(), time.monotonic()
        for _ in range(beats):
            self._session.send("Runtime.evaluate", {"expression": "0"})
            time.sleep(minutes * 60 / beats)
            self._measure()
        self.cpu = (self._service.cpu_s() - before) / (time.monotonic() - began)

    def _measure(self) -> None:
        self._session.send("HeapProfiler.collectGarbage")
        told = self._session.send("Performance.getMetrics")["metrics"]
        self.bytes.append(next(one["value"] for one in told if one["name"] == "JSHeapUsedSize"))


def _report(stream: Stream, seen: dict[int, float], heap: _Heap, alone: float, beats: int) -> None:
    """A step that was overtaken by the next on its way is on the screen when the next one is. What was on the
    screen when the looking began came at a time that nobody saw."""
    shown = sorted(seen)
    taken = []
    for step, at in sorted(stream.ended.items()):
        later = next((one for one in shown if one >= step), None)
        if shown and step > shown[0] and later is not None:
            taken.append(seen[later] - at)
    ordered = sorted(taken)
    if not ordered:
        raise RuntimeError("no step came to the screen")
    p50, p99 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    pages = 1 + SOCKETS
    warm = heap.bytes[len(heap.bytes) // 4]
    print(f"{RUNS} runs streaming, {METRICS} metrics each, 1 browser and {SOCKETS} sockets, {MINUTES:g} minutes")
    print(f"  step end → pixel, ms: p50 {p50:.0f}, p99 {p99:.0f}, max {ordered[-1]:.0f}")
    print(f"  {len(ordered)} steps in {len(shown)} paintings")
    print(f"  beats of the {SOCKETS} sockets: {beats}")
    mib = [round(size / (1 << 20), 1) for size in heap.bytes]
    print(f"  browser's live memory, MiB: {mib}; growth since the first quarter {heap.bytes[-1] / warm - 1:+.1%}")
    print(f"  CPU of the service, of one core: {alone:.1%} without pages, {heap.cpu:.1%} with {pages}: "
          f"{(heap.cpu - alone) / pages:.2%} for a page")  # fmt: skip
    print(json.dumps({"p50_ms": p50, "p99_ms": p99, "growth": heap.bytes[-1] / warm - 1}))


if __name__ == "__main__":
    main()
