"""The Grafana dashboards ask for names that are exposed, and leave none out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rlvitals.contract.metrics import find
from rlvitals_monitor.exposition import expose
from rlvitals_monitor.telemetry import Telemetry

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
NAME = re.compile(r"rlvitals_[a-z_]+")
LABEL = re.compile(r"by \(([^)]*)\)")


def expressions(name: str) -> list[str]:
    board: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def exposed(text: bytes) -> set[str]:
    names = {family.name for family in text_string_to_metric_families(text.decode())}
    return {name for name in names if not name.endswith("_created")}


def asked(name: str) -> set[str]:
    names = {found for expression in expressions(name) for found in NAME.findall(expression)}
    return {re.sub(r"_(bucket|sum|count|total)$", "", found) for found in names}


@pytest.mark.parametrize(
    ("board", "text"), [("service", Telemetry().render()), ("runs", expose([], []))], ids=["service", "runs"]
)
def test_a_board_shows_all_that_is_exposed_and_nothing_else(board: str, text: bytes) -> None:
    assert asked(board) == exposed(text)


def test_labels_that_are_grouped_by_are_those_that_a_metric_has() -> None:
    telemetry = Telemetry()
    known = {"le", "light", "run"}
    known |= {label for metric in vars(telemetry).values() for label in getattr(metric, "_labelnames", ())}
    grouped = {
        label.strip()
        for board in ("service", "runs")
        for expression in expressions(board)
        for group in LABEL.findall(expression)
        for label in group.split(",")
    }
    assert grouped <= known


def test_the_runs_board_names_metrics_of_the_registry() -> None:
    named = {
        metric
        for expression in expressions("runs")
        for group in re.findall(r'metric=~?"([^"]+)"', expression)
        for metric in group.split("|")
    }
    assert named
    assert all(find(metric) is not None for metric in named)


@pytest.mark.parametrize("board", ["service", "runs"])
def test_panels_have_numbers_of_their_own_and_do_not_overlap(board: str) -> None:
    panels = json.loads((FOLDER / f"{board}.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        covered = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not covered & cells
        assert at["x"] + at["w"] <= 24
        cells |= covered
