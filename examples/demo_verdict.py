"""What the demo promised, and whether it came true."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from demo_service import Service
from rich.console import Console
from rich.table import Table

PLANTED = {"unhealthy": {"truncation", "kl_pull_dominates"}, "twin": set[str]()}
SEVERE = ("warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One trainer's own summary beside what the service has of its run."""

    summary: dict[str, Any]
    alerts: list[dict[str, Any]]
    commands: list[dict[str, Any]]
    stored: int
    pull: list[tuple[int, float]]

    @property
    def flavour(self) -> str:
        return str(self.summary["flavour"])

    @property
    def severe(self) -> list[dict[str, Any]]:
        return [alert for alert in self.alerts if alert["severity"] in SEVERE and alert["fired_step"] is not None]

    @property
    def lost(self) -> int:
        dropped = int(self.summary["counters"].get("dropped", 0))
        return dropped + int(self.summary["steps"]) - self.stored

    @property
    def applied(self) -> list[dict[str, Any]]:
        return [c for c in self.commands if c["kind"] == "set_kl_coef" and c["state"] == "applied"]


def collect(service: Service, summary: dict[str, Any]) -> Told:
    run = summary["run"]
    points = {metric["metric"]: metric["points"] for metric in service.ask(f"/runs/{run}/metrics")}
    return Told(
        summary=summary,
        alerts=service.items(f"/alerts?run={run}&limit=200"),
        commands=service.items(f"/commands?run={run}&limit=200"),
        stored=int(points.get("progress.step_time", 0)),
        pull=_series(service, run, "kl.pull_ratio"),
    )


def broken_promises(told: Told) -> Iterator[str]:
    """Empty if all is as promised."""
    fired, planted = {alert["rule"] for alert in told.severe}, PLANTED[told.flavour]
    if told.lost:
        yield f"{told.flavour}: {told.lost} reports were lost"
    if fired - planted:
        yield f"{told.flavour}: alerts that nobody planted: {', '.join(sorted(fired - planted))}"
    if planted - fired:
        yield f"{told.flavour}: planted, but not found: {', '.join(sorted(planted - fired))}"
    if told.flavour == "unhealthy":
        yield from _broken_control(told)


def show(console: Console, told: list[Told]) -> None:
    runs = Table("run", "steps", "stored", "lost", "KL coefficient", title="Runs", title_justify="left")
    alerts = Table("run", "alert", "severity", "since", "fired", "value", title="Alerts", title_justify="left")
    commands = Table("run", "command", "state", "step", "before", "after", title="Commands", title_justify="left")
    for one in told:
        beta = f"{one.summary['beta_before']:g} → {one.summary['beta_after']:g}"
        steps = str(one.summary["steps"])
        runs.add_row(one.flavour, steps, str(one.stored), str(one.lost), beta)
        for alert in one.severe:
            named = (alert["rule"], alert["severity"], str(alert["since_step"]), str(alert["fired_step"]))
            alerts.add_row(one.flavour, *named, _number(alert["value"]))
        if not one.severe:
            alerts.add_row(one.flavour, "none", "", "", "", "")
        for command in one.commands:
            after = (str(command["step"]), _number(command["before"]), _number(command["after"]))
            commands.add_row(one.flavour, command["kind"], command["state"], *after)
    for table in (runs, alerts, commands):
        console.print(table)
    for line in (line for one in told for line in _answers(one)):
        console.print(line)


def _broken_control(told: Told) -> Iterator[str]:
    if not told.applied:
        yield "unhealthy: no approved set_kl_coef was applied"
        return
    last = told.applied[0]
    if last["after"] != told.summary["beta_after"]:
        yield f"unhealthy: the trainer's beta is {told.summary['beta_after']}, the outcome says {last['after']}"
    before, after = _around(told, last["step"])
    if not after < before:
        yield f"unhealthy: kl.pull_ratio did not answer: {before:.2f} before, {after:.2f} after"


def _answers(told: Told) -> Iterator[str]:
    for command in told.applied:
        before, after = _around(told, command["step"])
        yield (
            f"At step {command['step']} beta went from {command['before']:g} to {command['after']:g};"
            f" kl.pull_ratio (median of 5 steps) from {before:.2f} to {after:.2f}."
        )


def _around(told: Told, step: int) -> tuple[float, float]:
    """Median pull ratio of the last five steps under the old coefficient and the first five under the new one."""
    before = [value for at, value in told.pull if at <= step][-5:]
    after = [value for at, value in told.pull if at > step][:5]
    return _median(before), _median(after)


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else math.nan


def _series(service: Service, run: str, metric: str) -> list[tuple[int, float]]:
    found = service.ask(f"/runs/{run}/series?metric={metric}&limit=2000")[0]
    return [(step, float(value)) for step, value in zip(found["step"], found["value"], strict=True)]


def _number(value: float | str | None) -> str:
    return "" if value is None else f"{float(value):.3g}"
