"""SwanLab, local: files, and its dashboard extra, which reads them."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from benchmarks.trackers.contender import Opened, Place, Point, get

SHOWN = "SwanLab local"
REQUIREMENTS = ("swanlab[dashboard]==0.10.3", "setuptools<81")
IMPORT = "from swanlab import init, log"
READY = "/"
WITHOUT = {"outage": "its dashboard only reads files"}


def environment(place: Place) -> Mapping[str, str]:
    return {"SWANLAB_SAVE_DIR": str(place.folder / "home"), "SWANLAB_LOG_DIR": str(place.folder / "logs")}


FIRST_RUN = """
import sys, swanlab
run = swanlab.init(project="bench", name="first", mode="local", log_dir=sys.argv[1])
run.finish()
"""


def prepare(place: Place) -> list[str]:
    """Its dashboard sees no run where there was none when it began."""
    (place.folder / "logs").mkdir(exist_ok=True)
    return ["-c", FIRST_RUN, str(place.folder / "logs")]


def serve(place: Place) -> list[str]:
    return ["-m", "swanlab", "watch", str(place.folder / "logs"), "--port", str(place.port)]


def open_run(place: Place, run: str) -> Opened:
    import swanlab as them  # type: ignore[import-not-found]

    them.init(project="bench", name=run, mode="local", log_dir=str(place.folder / "logs"))
    return Opened(lambda step, values: them.log(dict(values), step=step), them.finish)


def last_step(place: Place, run: str) -> int:
    from benchmarks.trackers.work import FIRST

    return max(steps(place, run, FIRST), default=-1)


def steps(place: Place, run: str, name: str) -> list[int]:
    return [step for step, _ in chart(place, run, name)]


def chart(place: Place, run: str, name: str) -> list[Point]:
    experiments = get(f"{place.url}/api/v1/project")["data"]["experiments"]
    number = next(one["id"] for one in experiments if one["name"] == run)
    told = get(f"{place.url}/api/v1/experiment/{number}/tag/{urllib.parse.quote(name, safe='')}")
    return [(int(one["index"]), float(one["data"])) for one in told["data"]["list"]]
