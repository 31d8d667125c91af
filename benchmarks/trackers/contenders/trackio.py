"""Trackio: its own self-hosted server, and a client that sends each half second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point, post

SHOWN = "Trackio"
REQUIREMENTS = ("trackio==0.43.0", "setuptools<81")
IMPORT = "from trackio import init, log"
TAKES_REPORTS = True
READY = "/"
PROJECT = "bench"


def environment(place: Place) -> Mapping[str, str]:
    return {
        "TRACKIO_DIR": str(place.folder / "trackio"),
        "TRACKIO_WRITE_TOKEN": "bench",
        "GRADIO_SERVER_PORT": str(place.port),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
    }


def serve(place: Place) -> list[str]:
    return ["-m", "trackio.cli", "show", "--host", "127.0.0.1"]


def open_run(place: Place, run: str) -> Opened:
    import trackio as them  # type: ignore[import-not-found]

    them.init(project=PROJECT, name=run, server_url=place.url, embed=False)
    return Opened(lambda step, values: them.log(dict(values), step=step), them.finish)


def last_step(place: Place, run: str) -> int:
    told = _ask(place, "get_run_summary", run=run)
    return -1 if not told or told.get("last_step") is None else int(told["last_step"])


def steps(place: Place, run: str, name: str) -> list[int]:
    return [int(one["step"]) for one in _ask(place, "get_metric_values", run=run, metric_name=name)]


def chart(place: Place, run: str, name: str) -> list[Point]:
    (told,) = _ask(place, "get_logs_batch", runs=[{"run": run}], scalar_only=True)
    return [(int(one["step"]), float(one[name])) for one in told["logs"] if one.get(name) is not None]


def _ask(place: Place, what: str, **query: object) -> Any:
    told = post(f"{place.url}/api/{what}", {"kwargs": {"project": PROJECT, **query}})
    if told.get("error"):
        raise ValueError(told["error"])
    return told["data"]
