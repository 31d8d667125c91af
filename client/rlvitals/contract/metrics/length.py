"""Completion lengths and how completions end."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

LENGTH: tuple[Metric, ...] = (
    Metric(
        name="length.mean",
        unit="{token}",
        merge=Merge.TALLY,
        worse=Worse.BOTH,
        meaning="Mean completion length, tokens chosen by the policy.",
        formula="sum / completions",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.min",
        unit="{token}",
        merge=Merge.MIN,
        worse=Worse.NEITHER,
        meaning="Shortest completion.",
        formula="min",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.max",
        unit="{token}",
        merge=Merge.MAX,
        worse=Worse.NEITHER,
        meaning="Longest completion.",
        formula="max",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.truncation_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions cut by the limit: last id no stop id and length at the cap.",
        formula="signals 1.7",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.stop_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="Share of completions that end in a stop id.",
        formula="signals 1.7",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.empty_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions without a token beside the stop id.",
        formula="count / completions",
        shape="(B,) lengths and last ids",
    ),
    Metric(
        name="length.completions",
        unit="{completion}",
        merge=Merge.SUM,
        worse=Worse.NEITHER,
        meaning="Completions seen in this step.",
        formula="count",
        shape="(B,) lengths and last ids",
    ),
)
