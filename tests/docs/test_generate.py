"""The generated pages: every metric in full, readable by a person, linked to."""

from __future__ import annotations

import re

import pytest

from docs.generate import metrics_page
from rlvitals.contract.metrics import METRICS, Metric


def test_every_metric_has_a_line_to_look_it_up_and_a_section_that_it_leads_to() -> None:
    page = metrics_page()
    sections = re.findall(r"^### `(.+)`$", page, re.MULTILINE)
    linked = re.findall(r"^\| \[`(.+)`\]\(#(\S+)\)", page, re.MULTILINE)
    assert sections == [metric.name for metric in METRICS]
    assert [name for name, _ in linked] == sections
    assert all(anchor == name.replace(".", "") for name, anchor in linked)


def test_each_section_says_all_that_the_registry_knows() -> None:
    sections = re.split(r"^### ", metrics_page(), flags=re.MULTILINE)[1:]
    for metric, section in zip(METRICS, sections, strict=True):
        for fact in (metric.meaning, metric.unit, metric.merge.value, metric.formula, metric.shape, metric.edge):
            assert fact in section, metric.name


def test_no_row_of_a_table_is_broken_by_what_a_metric_says() -> None:
    rows = [line for line in metrics_page().splitlines() if line.startswith("| [`")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_says_how_it_is_computed_from_what_and_what_happens_at_the_edges(metric: Metric) -> None:
    for fact in ("meaning", "unit", "formula", "shape", "edge", "source"):
        assert getattr(metric, fact).strip(), fact
    assert metric.meaning.endswith("."), "a sentence"
    assert "`" not in metric.formula, "the page sets it in code"
