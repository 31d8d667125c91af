"""W&B, offline: a file for each run. Nothing reads it but `wandb sync`, and our importer, which counts here."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.trackers.contender import Opened, Place

SHOWN = "W&B offline"
REQUIREMENTS = ("wandb==0.31.0", "setuptools<81")
IMPORT = "from wandb import init"
READ_BY_US = True
_NOBODY = "an offline run is read by nothing before `wandb sync` to a server"
WITHOUT = {"latency": _NOBODY, "ingest": _NOBODY, "chart": _NOBODY, "outage": "no server"}


def environment(place: Place) -> Mapping[str, str]:
    return {"WANDB_ERROR_REPORTING": "false", "WANDB_DIR": str(place.folder)}


def open_run(place: Place, run: str) -> Opened:
    import wandb as them  # type: ignore[import-not-found]

    settings = them.Settings(silent=True)
    opened = them.init(project="bench", id=run, mode="offline", dir=str(place.folder), settings=settings)
    return Opened(lambda step, values: opened.log(dict(values), step=step), opened.finish)


def steps(place: Place, run: str, name: str) -> list[int]:
    from rlvitals.formats.log import Log
    from rlvitals.formats.row import Row

    path = next(place.folder.rglob(f"*{run}*.wandb"))
    return [row.step or 0 for row in Log.of(path).rows() if isinstance(row, Row)]
