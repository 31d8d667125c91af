"""Completion lengths and how completions end."""

from __future__ import annotations

from rlvitals.contract.metrics.metric import Merge, Metric, Worse

_LENGTHS = "(B,) lengths in tokens that the policy chose, stop id included"
_ENDS = "(B,) lengths and last ids, the set of all stop ids, the cap; or the engine's finish reasons"
_NONE = "missing without completions"
_UNKNOWN = "missing without completions, without stop ids, or without a cap where the engine says nothing"

LENGTH: tuple[Metric, ...] = (
    Metric(
        name="length.mean",
        unit="{token}",
        merge=Merge.TALLY,
        worse=Worse.BOTH,
        meaning="Mean completion length, tokens chosen by the policy.",
        formula="sum of lengths / completions",
        shape=_LENGTHS,
        edge=_NONE,
        source="every trainer's log",
    ),
    Metric(
        name="length.min",
        unit="{token}",
        merge=Merge.MIN,
        worse=Worse.NEITHER,
        meaning="Shortest completion.",
        formula="min, with its sample",
        shape=_LENGTHS,
        edge=_NONE,
    ),
    Metric(
        name="length.max",
        unit="{token}",
        merge=Merge.MAX,
        worse=Worse.NEITHER,
        meaning="Longest completion.",
        formula="max, with its sample",
        shape=_LENGTHS,
        edge=_NONE,
    ),
    Metric(
        name="length.cv",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.BOTH,
        meaning="Spread of the lengths against their mean: near 0 all answers have one length.",
        formula="sqrt(sum (length - mean)^2 / (n - 1)) / mean",
        shape=_LENGTHS,
        edge="missing for fewer than two completions, and where all are empty",
        source="coefficient of variation",
    ),
    Metric(
        name="length.truncation_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions cut by the limit: last id no stop id and length at the cap.",
        formula="count(finish reason is length, or last id not in stop ids and length >= cap) / completions",
        shape=_ENDS,
        edge=f"{_UNKNOWN}; a stop id exactly at the cap is no truncation",
        source="slime truncated_ratio agrees; TRL, verl and OpenRLHF's clip ratios measure other things",
    ),
    Metric(
        name="length.at_cap_share",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions as long as the limit allows, whether or not they end in a stop id there.",
        formula="count(length >= cap) / completions",
        shape="(B,) lengths with what tools wrote, the cap or (B,) caps",
        edge="missing without completions or without a cap",
        source="verl V0 response_length/clip_ratio",
    ),
    Metric(
        name="length.stop_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="Share of completions that end in a stop id.",
        formula="count(last id in stop ids, or finish reason is stop) / completions",
        shape=_ENDS,
        edge="missing without completions or without stop ids; a completion without a token does not end in one",
    ),
    Metric(
        name="length.aborted_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions that neither stopped nor were cut by the limit: aborted, or a tool call.",
        formula="1 - stop_rate - truncation_rate",
        shape=_ENDS,
        edge=_UNKNOWN,
    ),
    Metric(
        name="length.empty_rate",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.UP,
        meaning="Share of completions without a token beside the stop id.",
        formula="count(length 0, or length 1 and that id a stop id) / completions",
        shape=_ENDS,
        edge=_NONE,
    ),
    Metric(
        name="length.suggested_cap",
        unit="{token}",
        merge=Merge.TALLY,
        worse=Worse.NEITHER,
        meaning="A max_completion_length that would let 95 % of the answers end by themselves.",
        formula=(
            "least t with S(t) <= 0.05, at 95 % confidence where the step has answers enough; S by Kaplan-Meier: "
            "answers that were cut are censored; bins of 1/16 octave, so at most 4.5 % too long"
        ),
        shape=_ENDS,
        edge=(
            "missing where more than 5 % were still running when they were cut ('at least the cap'), "
            "without completions and without stop ids"
        ),
        source="Kaplan and Meier (1958)",
    ),
    Metric(
        name="length.suggested_cap_confidence",
        unit="1",
        merge=Merge.TALLY,
        worse=Worse.DOWN,
        meaning="How sure it is that the suggested cap (else the longest answer seen) covers 95 % of answers.",
        formula="I_0.05(n S + 1, n (1 - S)), n the effective number of answers by Greenwood's variance",
        shape=_ENDS,
        edge="1 - 0.95^n for the longest of n answers, none cut; 0 where none ended; missing without completions",
        source="Clopper and Pearson (1934); Greenwood (1926)",
    ),
    Metric(
        name="length.completions",
        unit="{completion}",
        merge=Merge.SUM,
        worse=Worse.NEITHER,
        meaning="Completions seen in this step.",
        formula="count",
        shape=_LENGTHS,
        edge="0 without completions",
    ),
)
