"""The runs' latest values as Prometheus samples: NaN and the infinities are values there, missing is absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily

from rlvitals.contract.view import RunView
from rlvitals_monitor.store.latest import Latest


class _Runs:
    """A collector over what was read once."""

    def __init__(self, runs: Iterable[RunView], values: Iterable[Latest]) -> None:
        self._runs, self._values = tuple(runs), tuple(values)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        labels = ["run", "project"]
        step = GaugeMetricFamily("rlvitals_run_step", "The run's last step", labels=labels)
        light = GaugeMetricFamily(
            "rlvitals_run_light", "1 for the light that the run has", labels=[*labels, "light"]
        )
        firing = GaugeMetricFamily("rlvitals_run_alerts_firing", "Alerts of the run that fire", labels=labels)
        rate = GaugeMetricFamily("rlvitals_run_steps_per_minute", "How fast it steps", labels=labels)
        for run in self._runs:
            own = [run.id, run.project]
            light.add_metric([*own, run.light.value], 1)
            firing.add_metric(own, run.firing)
            if run.last_step is not None:
                step.add_metric(own, run.last_step)
            if run.steps_per_minute is not None:
                rate.add_metric(own, run.steps_per_minute)
        value = GaugeMetricFamily(
            "rlvitals_run_value", "The newest value of a metric of the run", labels=[*labels, "metric"]
        )
        for one in self._values:
            value.add_metric([one.run, one.project, one.metric], one.value)
        yield from (step, light, firing, rate, value)


def expose(runs: Iterable[RunView], values: Iterable[Latest]) -> bytes:
    """The Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Runs(runs, values))
    return generate_latest(registry)
