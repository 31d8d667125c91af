"""MLflow: `mlflow server` on SQLite, ``log_metrics`` as it comes, which waits for the answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from benchmarks.trackers.contender import Opened, Place, Point, get

SHOWN = "MLflow"
REQUIREMENTS = ("mlflow==3.17.2", "setuptools<81")
IMPORT = "import mlflow"
TAKES_REPORTS = True
READY = "/health"
BATCH = 1_000


def environment(place: Place) -> Mapping[str, str]:
    return {"MLFLOW_TRACKING_URI": place.url, "MLFLOW_DISABLE_TELEMETRY": "true", "GIT_PYTHON_REFRESH": "quiet"}


def serve(place: Place) -> list[str]:
    store = f"sqlite:///{place.folder / 'mlflow.db'}"
    artifacts = str(place.folder / "artifacts")
    return [
        *("-m", "mlflow", "server", "--port", str(place.port)),
        *("--backend-store-uri", store, "--artifacts-destination", artifacts),
    ]


def open_run(place: Place, run: str) -> Opened:
    import mlflow as them  # type: ignore[import-not-found]

    them.start_run(run_name=run)
    return Opened(lambda step, values: them.log_metrics(dict(values), step=step), them.end_run)


def open_curve(place: Place, run: str) -> Opened:
    """Its own way for many numbers at once."""
    import mlflow as them

    client, opened = them.MlflowClient(), them.start_run(run_name=run)
    waiting: list[Any] = []

    def flush() -> None:
        client.log_batch(opened.info.run_id, metrics=waiting)
        waiting.clear()

    def log(step: int, values: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        waiting.extend(them.entities.Metric(name, value, now, step) for name, value in values.items())
        if len(waiting) >= BATCH:
            flush()

    def close() -> None:
        if waiting:
            flush()
        them.end_run()

    return Opened(log, close)


def last_step(place: Place, run: str) -> int:
    found = _run(run)
    metrics = [] if found is None else found.data._metric_objs
    return max((metric.step for metric in metrics), default=-1)


def steps(place: Place, run: str, name: str) -> list[int]:
    import mlflow as them

    found = _run(run)
    if found is None:
        return []
    return [metric.step for metric in them.MlflowClient().get_metric_history(found.info.run_id, name)]


def chart(place: Place, run: str, name: str) -> list[Point]:
    query = {"run_ids": _id(run), "metric_key": name, "max_results": 320}
    told = get(f"{place.url}/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval", query)
    return [(int(one["step"]), float(one["value"])) for one in told["metrics"]]


def _id(run: str) -> str:
    found = _run(run)
    return "" if found is None else str(found.info.run_id)


_IDS: dict[str, str] = {}


def _run(run: str) -> Any:
    import mlflow as them

    client = them.MlflowClient()
    if run not in _IDS:
        rows = client.search_runs(["0"], f"attributes.run_name = '{run}'")
        if not rows:
            return None
        _IDS[run] = rows[0].info.run_id
    return client.get_run(_IDS[run])
