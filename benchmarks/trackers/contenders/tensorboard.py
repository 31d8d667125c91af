"""TensorBoard: event files, and its own server on their folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point, get

SHOWN = "TensorBoard"
REQUIREMENTS = ("tensorboard==2.21.0", "setuptools<81")
IMPORT = "from tensorboard.summary import Writer"
READY = "/data/runs"
WITHOUT = {"outage": "its server only reads files"}


def serve(place: Place) -> list[str]:
    return ["-m", "tensorboard.main", "--logdir", str(place.folder), "--port", str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    from tensorboard.summary import Writer  # type: ignore[import-not-found]

    writer = Writer(str(place.folder / run))

    def log(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    return Opened(log, writer.close)


def last_step(place: Place, run: str) -> int:
    from benchmarks.trackers.work import FIRST

    return max((step for step, _ in chart(place, run, FIRST)), default=-1)


def steps(place: Place, run: str, name: str) -> list[int]:
    from tensorboard.backend.event_processing import event_accumulator  # type: ignore[import-not-found]

    events = event_accumulator.EventAccumulator(
        str(place.folder / run), size_guidance={"tensors": 0, "scalars": 0}
    )
    events.Reload()
    found: Any = events.Tensors(name) if name in events.Tags()["tensors"] else events.Scalars(name)
    return [event.step for event in found]


def chart(place: Place, run: str, name: str) -> list[Point]:
    told = get(f"{place.url}/data/plugin/scalars/scalars", {"run": run, "tag": name})
    return [(step, float(value)) for _, step, value in told]
