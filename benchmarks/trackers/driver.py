"""Runs in a contender's own environment: ``python -m benchmarks.trackers.driver NAME TASK FOLDER PORT ARGUMENTS``.

``ARGUMENTS`` are JSON; the answer is a line of JSON behind ``RESULT``. Times are of the clock that all processes
of a machine share.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.trackers.contender import Contender, Place, contender
from benchmarks.trackers.work import CURVE, FIRST, NAN_AT, SPIKE, curve, scalars

CALLS, PAUSE_S = 1_000, 0.001
LOOK_S = 0.02
CHART_LOOKS = 5
Told = dict[str, Any]


def cost(of: Contender, place: Place, run: str) -> Told:
    """µs that the caller waits for `log`, with a millisecond of Python before each call."""
    opened, taken = of.open_run(place, run), []
    made = [scalars(step) for step in range(CALLS)]
    for step in range(CALLS):
        _spin(PAUSE_S)
        began = time.perf_counter_ns()
        opened.log(step, made[step])
        taken.append((time.perf_counter_ns() - began) / 1000)
    taken.sort()
    return {"median": statistics.median(taken), "p99": taken[int(CALLS * 0.99)], "most": taken[-1]}


def import_time(of: Contender, _place: Place) -> Told:
    began = time.perf_counter()
    exec(of.IMPORT, {})
    return {"import_s": time.perf_counter() - began}


def killed(of: Contender, place: Place, run: str) -> Told:
    """Ends by SIGKILL right behind the last call."""
    opened = of.open_run(place, run)
    for step in range(CALLS):
        _spin(PAUSE_S)
        opened.log(step, scalars(step))
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def feed(of: Contender, place: Place, runs: int, count: int) -> Told:
    """``runs`` processes, each with a run of its own, that log as fast as they can once ``go`` is there."""
    exec(of.IMPORT, {})
    children = []
    for number in range(runs):
        child = os.fork()
        if not child:
            _feed_one(of, place, f"run{number}", count)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] for child in children]
    return {"ended": time.monotonic(), "failed": sum(status != 0 for status in ended)}


def _feed_one(of: Contender, place: Place, run: str, count: int) -> None:
    status = 1
    try:
        opened = of.open_run(place, run)
        made = [scalars(step) for step in range(count)]
        (place.folder / f"ready-{run}").touch()
        while not (place.folder / "go").exists():
            time.sleep(0.005)
        for step in range(count):
            opened.log(step, made[step])
        opened.close()
        status = 0
    finally:
        os._exit(status)


def await_all(of: Contender, place: Place, runs: int, count: int, limit_s: float) -> Told:
    """Until a reader finds the last step of every run; not a later one, see `watch`."""
    missing, until = {f"run{number}" for number in range(runs)}, time.monotonic() + limit_s
    while missing and time.monotonic() < until:
        missing = {run for run in missing if _last(of, place, run) != count - 1}
        time.sleep(LOOK_S)
    seen = time.monotonic()
    found = sum(len(_steps(of, place, f"run{number}", FIRST)) for number in range(runs))
    return {"seen": seen, "found": found, "missing": len(missing)}


def pace(of: Contender, place: Place, run: str, count: int, every_s: float) -> Told:
    """One step each ``every_s``: when each was logged."""
    opened, logged, begin = of.open_run(place, run), [], time.monotonic()
    for step in range(count):
        time.sleep(max(0.0, begin + step * every_s - time.monotonic()))
        logged.append(time.monotonic())
        opened.log(step, scalars(step))
    time.sleep(20 * every_s)
    opened.close()
    return {"logged": logged}


def watch(of: Contender, place: Place, run: str, count: int, limit_s: float) -> Told:
    """When each step was first readable, by looking again and again.

    Who reads files that are being written may be told of a step that there is none of: no step was seen then.
    """
    seen: list[float] = []
    until = time.monotonic() + limit_s
    while len(seen) < count and time.monotonic() < until:
        last = _last(of, place, run)
        now = time.monotonic()
        if last < count:
            seen += [now] * (last + 1 - len(seen))
        time.sleep(LOOK_S / 4)
    return {"seen": seen}


def long_run(of: Contender, place: Place, run: str, most: int, limit_s: float) -> Told:
    """One metric, a million steps or as many as it takes in the time."""
    opened = getattr(of, "open_curve", of.open_run)(place, run)
    began, step = time.monotonic(), 0
    while step < most and (step % 100 or time.monotonic() < began + limit_s):
        opened.log(step, {CURVE: curve(step)})
        step += 1
    logged = time.monotonic() - began
    opened.close()
    return {"steps": step, "log_s": logged, "close_s": time.monotonic() - began - logged}


def chart(of: Contender, place: Place, run: str, last: int, limit_s: float) -> Told:
    """The first look that goes to the end, less a bucket; further looks; whether spike and NaN are in it."""
    began = time.monotonic()
    points: list[tuple[int, float]] = []
    while not points or max(step for step, _ in points) < 0.99 * last:
        if time.monotonic() > began + limit_s:
            raise TimeoutError(f"after {limit_s:g} s the chart ends at {max(points, default=None)}")
        points = _chart(of, place, run)
    first, again = time.monotonic() - began, []
    for _ in range(CHART_LOOKS):
        began = time.monotonic()
        points = of.chart(place, run, CURVE)
        again.append(time.monotonic() - began)
    return {
        "first_s": first,
        "again_s": statistics.median(again),
        "points": len(points),
        "spike": any(value == SPIKE for _, value in points),
        "nan": any(math.isnan(value) and step == NAN_AT for step, value in points),
    }


def outage(of: Contender, place: Place, run: str, every_s: float, for_s: float) -> Told:
    """A step each ``every_s`` for ``for_s``, whatever becomes of the server meanwhile."""
    opened, longest, step, raised = of.open_run(place, run), 0.0, 0, ""
    (place.folder / "going").touch()
    began = time.monotonic()
    while time.monotonic() < began + for_s and not raised:
        time.sleep(max(0.0, min(every_s, began + step * every_s - time.monotonic())))
        at = time.monotonic()
        try:
            opened.log(step, scalars(step))
            step += 1
        except Exception as error:  # noqa: BLE001 - whatever a tracker raises would have ended the training
            raised = f"{type(error).__name__}: {error}"[:200]
        longest = max(longest, time.monotonic() - at)
    ended = time.monotonic()
    opened.close()
    return {
        "logged": step,
        "longest_ms": longest * 1e3,
        "raised": raised,
        "ended": ended,
        "close_s": time.monotonic() - ended,
    }


def count(of: Contender, place: Place, run: str, wanted: int, limit_s: float) -> Told:
    """Steps that a reader finds once no more come: at once if all are there, else after ``limit_s`` at most."""
    until, found, at = time.monotonic() + limit_s, -1, time.monotonic()
    while found < wanted and time.monotonic() < until:
        now = len(set(_steps(of, place, run, FIRST)))
        found, at = (now, time.monotonic()) if now != found else (found, at)
        time.sleep(LOOK_S * 5)
    return {"found": max(found, 0), "at": at}


def _last(of: Contender, place: Place, run: str) -> int:
    """-1 too while the run is not known yet: each tracker says so in its own way."""
    try:
        return of.last_step(place, run)
    except Exception:  # noqa: BLE001
        return -1


def _steps(of: Contender, place: Place, run: str, name: str) -> list[int]:
    try:
        return of.steps(place, run, name)
    except Exception:  # noqa: BLE001 - as above
        return []


def _chart(of: Contender, place: Place, run: str) -> list[tuple[int, float]]:
    try:
        return of.chart(place, run, CURVE)
    except Exception:  # noqa: BLE001 - as above
        return []


def _spin(seconds: float) -> None:
    """A training loop's own Python between two calls."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        math.fsum(float(i) for i in range(200))


TASKS: dict[str, Callable[..., Told]] = {
    "cost": cost,
    "import": import_time,
    "killed": killed,
    "feed": feed,
    "await": await_all,
    "pace": pace,
    "watch": watch,
    "long_run": long_run,
    "chart": chart,
    "outage": outage,
    "count": count,
}


def main() -> None:
    name, task, folder, port, arguments = sys.argv[1:]
    told = TASKS[task](contender(name), Place(folder=Path(folder), port=int(port)), *json.loads(arguments))
    os.write(1, ("\nRESULT " + json.dumps(told) + "\n").encode())
    os._exit(0)


if __name__ == "__main__":
    main()
