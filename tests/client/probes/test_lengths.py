"""Lengths, truncation and stops."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.arguments import ShapeError
from rlvitals.probes.length_history import LengthHistory
from rlvitals.probes.lengths import stop_ids_of, tally_lengths
from rlvitals.probes.tally import Tally

STOP = {2, 9}
SUGGESTED, CONFIDENCE = "length.suggested_cap", "length.suggested_cap_confidence"
UNTOLD = {"length.truncation_rate", "length.stop_rate", "length.aborted_rate", SUGGESTED, CONFIDENCE}


def test_truncated_is_at_the_cap_without_a_stop_id() -> None:
    measured = tally_lengths([8, 8, 3, 5, 0], [7, 9, 2, 7, 2], STOP, 8).measured()
    assert measured.values["length.truncation_rate"] == 0.2
    assert measured.values["length.stop_rate"] == 0.4
    assert measured.values["length.mean"] == 4.8
    assert measured.values["length.completions"] == 5


def test_a_stop_id_exactly_at_the_cap_is_no_truncation_and_an_early_end_without_one_is_neither() -> None:
    values = tally_lengths([8, 5], [2, 7], STOP, 8).measured().values
    assert (values["length.truncation_rate"], values["length.stop_rate"]) == (0.0, 0.5)


def test_the_engines_finish_reason_overrules_the_rule() -> None:
    values = tally_lengths([5, 5], [7, 7], STOP, 8, truncated=torch.tensor([True, False])).measured().values
    assert values["length.truncation_rate"] == 0.5


def test_empty_is_nothing_or_a_lone_stop_id() -> None:
    values = tally_lengths([0, 1, 1, 4], [2, 2, 7, 2], STOP, 8).measured().values
    assert values["length.empty_rate"] == 0.5


def test_shortest_and_longest_are_named() -> None:
    extremes = tally_lengths([5, 2, 9], [1, 1, 1], STOP, 10, sample_offset=3).measured().extremes
    assert (extremes["length.min"].value, extremes["length.min"].sample) == (2.0, 4)
    assert (extremes["length.max"].value, extremes["length.max"].sample) == (9.0, 5)


@pytest.mark.parametrize(
    ("stop_ids", "cap", "absent"),
    [
        (STOP, None, {"length.truncation_rate", "length.aborted_rate", "length.at_cap_share", SUGGESTED}),
        (set(), 8, UNTOLD),
        (set(), None, UNTOLD | {"length.at_cap_share"}),
    ],
)
def test_what_is_not_known_is_missing_with_a_reason_and_not_zero(
    stop_ids: set[int], cap: int | None, absent: set[str]
) -> None:
    measured = tally_lengths([8, 7], [7, 2], stop_ids, cap).measured()
    assert set(measured.missing) == absent
    assert not absent & measured.values.keys()


def test_without_completions_all_is_missing_but_their_number() -> None:
    measured = tally_lengths([], [], STOP, 8).measured()
    assert measured.values == {"length.completions": 0.0}
    assert {"length.mean", "length.min", "length.max", "length.truncation_rate"} <= set(measured.missing)


def test_the_histogram_counts_every_completion_in_octave_quarters() -> None:
    edges, counts = tally_lengths([0, 1, 2, 2, 300], [1] * 5, STOP, 500).measured().histograms["length.mean"]
    assert sum(counts) == 5
    assert len(edges) == len(counts) + 1
    assert edges[0] == 0.0
    assert edges[-2] <= 300 < edges[-1]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=20), st.integers(0, 20))
def test_generations_add_up_to_the_batch(rows: list[tuple[int, int]], cut: int) -> None:
    cut = min(cut, len(rows))

    def part(start: int, stop: int) -> object:
        chosen = rows[start:stop]
        return tally_lengths([n for n, _ in chosen], [i for _, i in chosen], STOP, 8, sample_offset=start)

    split = part(cut, len(rows)) + part(0, cut)  # type: ignore[operator]
    assert split == part(0, len(rows))


def test_lengths_without_their_last_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="one last id per completion, got 1 of 2"):
        tally_lengths([1, 2], [1], STOP, 8)


def test_the_spread_of_lengths_is_that_of_a_sample() -> None:
    values = tally_lengths([2, 4, 9], [1] * 3, STOP, 10).measured().values
    assert values["length.cv"] == pytest.approx(np.std([2, 4, 9], ddof=1) / 5)
    assert "fewer than two" in tally_lengths([2], [1], STOP, 10).measured().missing["length.cv"]
    assert "empty" in tally_lengths([0, 0], [1, 1], STOP, 10).measured().missing["length.cv"]


def test_at_the_cap_counts_stops_there_too_and_a_cap_may_differ_by_row() -> None:
    values = tally_lengths([8, 8, 3], [7, 2, 7], STOP, 8).measured().values
    assert (values["length.at_cap_share"], values["length.truncation_rate"]) == (2 / 3, 1 / 3)
    rows = tally_lengths([8, 5, 3], [7, 7, 7], STOP, torch.tensor([10, 5, 4])).measured().values
    assert (rows["length.at_cap_share"], rows["length.truncation_rate"]) == (1 / 3, 1 / 3)
    assert rows["length.aborted_rate"] == 2 / 3


def test_what_a_tool_wrote_counts_against_the_cap_but_not_as_the_policys() -> None:
    values = tally_lengths([3, 3], [7, 7], STOP, 8, total_lengths=[8, 5]).measured().values
    assert (values["length.mean"], values["length.truncation_rate"]) == (3.0, 0.5)


def test_the_engine_has_the_last_word_row_by_row() -> None:
    reasons = ["stop", "length", "abort", "tool_calls", None]
    values = tally_lengths([8, 3, 3, 3, 8], [7] * 5, STOP, 8, finish_reasons=reasons).measured().values
    assert (values["length.stop_rate"], values["length.truncation_rate"]) == (0.2, 0.4)
    assert values["length.aborted_rate"] == pytest.approx(0.4)


def test_where_the_engine_says_all_neither_cap_nor_stop_ids_are_needed() -> None:
    values = tally_lengths([4, 4], [7, 7], (), None, finish_reasons=["stop", "length"]).measured().values
    assert (values["length.stop_rate"], values["length.truncation_rate"]) == (0.5, 0.5)
    partly = tally_lengths([4, 4], [7, 7], (), None, finish_reasons=["stop", None]).measured()
    assert "length.truncation_rate" in partly.missing


def test_all_stop_ids_of_every_config_end_a_completion() -> None:
    tokenizer, config = SimpleNamespace(eos_token_id=2), SimpleNamespace(eos_token_id=[32000, 32007])
    assert stop_ids_of(tokenizer, config, None, 5, [6, None], np.int64(7)) == {2, 32000, 32007, 5, 6, 7}


def test_the_suggested_cap_of_uncensored_answers_is_exact_up_to_a_bin() -> None:
    lengths = np.random.default_rng(0).lognormal(5.5, 0.6, 4000).astype(int)
    values = tally_lengths(lengths, [2] * 4000, STOP, 1 << 17).measured().values
    true = np.quantile(lengths, 0.95)
    assert true <= values[SUGGESTED] <= true * 1.10
    assert values[CONFIDENCE] >= 0.95


@pytest.mark.parametrize("cap", [700, 800])
def test_a_cap_in_the_tail_does_not_move_the_suggestion(cap: int) -> None:
    lengths = np.random.default_rng(0).lognormal(5.5, 0.6, 4000).astype(int)
    seen = np.minimum(lengths, cap)
    values = tally_lengths(seen, np.where(lengths > cap, 7, 2), STOP, cap).measured().values
    assert np.quantile(lengths, 0.95) <= values[SUGGESTED] <= np.quantile(lengths, 0.95) * 1.10
    assert values[CONFIDENCE] >= 0.95


def test_aborted_answers_are_censored_where_the_plain_quantile_would_be_too_short() -> None:
    dice = np.random.default_rng(0)
    lengths, aborted_at = dice.lognormal(5.5, 0.6, 20000), dice.exponential(400, 20000)
    seen = np.minimum(lengths, aborted_at).astype(int)
    reasons = ["stop" if whole else "abort" for whole in lengths <= aborted_at]
    values = tally_lengths(seen, [7] * 20000, (), None, finish_reasons=reasons).measured().values
    true = np.quantile(lengths, 0.95)
    assert np.quantile(seen, 0.95) < 0.8 * true
    assert 0.95 * true < values[SUGGESTED] < 1.15 * true


def test_where_the_cap_cuts_too_many_the_answer_is_at_least_the_cap() -> None:
    lengths = np.array([100] * 90 + [256] * 10)
    measured = tally_lengths(lengths, [2] * 90 + [7] * 10, STOP, 256).measured()
    assert measured.missing[SUGGESTED].startswith("at least the cap")
    assert measured.values[CONFIDENCE] < 0.05
    none = tally_lengths([256] * 3, [7] * 3, STOP, 256).measured()
    assert none.missing[SUGGESTED].startswith("at least the cap")
    assert none.values[CONFIDENCE] == 0.0


def test_few_answers_give_little_confidence() -> None:
    measured = tally_lengths([5, 6, 7, 8, 9, 10, 11, 12], [2] * 8, STOP, 256).measured()
    assert measured.values[SUGGESTED] == 12
    assert measured.values[CONFIDENCE] == pytest.approx(1 - 0.95**8)


def test_the_suggestion_of_parts_is_that_of_the_whole() -> None:
    lengths = np.random.default_rng(1).integers(0, 300, 200)
    last = np.where(lengths >= 280, 7, 2)
    parts = [
        tally_lengths(lengths[at : at + 50], last[at : at + 50], STOP, 280, sample_offset=at)
        for at in (50, 0, 150, 100)
    ]
    assert parts[0] + parts[1] + parts[2] + parts[3] == tally_lengths(lengths, last, STOP, 280)


@pytest.mark.parametrize(
    ("name", "value"),
    [("truncated", [True]), ("finish_reasons", ["stop"]), ("total_lengths", [1, 2, 3]), ("cap", [8, 8, 8])],
)
def test_what_is_told_of_another_number_of_completions_is_refused(name: str, value: list[object]) -> None:
    arguments: dict[str, Any] = {"cap": 8} | {name: value}
    with pytest.raises(ShapeError, match=f"{name}: expected one"):
        tally_lengths([1, 2], [1, 1], STOP, **arguments)


def test_lists_arrays_and_tensors_count_the_same() -> None:
    lengths, last, caps = [8, 3, 0, 8], [7, 2, 7, 9], [8, 8, 8, 9]
    expected = tally_lengths(lengths, last, STOP, caps)
    assert tally_lengths(np.array(lengths), np.array(last), STOP, np.array(caps)) == expected
    tensors = (torch.tensor(values, dtype=torch.int32) for values in (lengths, last, caps))
    tensor, of_last, of_caps = tensors
    assert tally_lengths(tensor, of_last, STOP, of_caps) == expected


REASONS = st.sampled_from([None, "stop", "length", "abort", "tool_calls", "FINISHED_STOPPED"])


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), REASONS), min_size=1, max_size=12), st.integers(0, 12)
)
def test_how_they_ended_adds_up_over_any_split(rows: list[tuple[int, int, str | None]], cut: int) -> None:
    cut = min(cut, len(rows))

    def part(start: int, stop: int) -> Tally:
        lengths, last, reasons = zip(*rows[start:stop], strict=True) if rows[start:stop] else ((), (), ())
        return tally_lengths(lengths, last, STOP, 8, finish_reasons=reasons, sample_offset=start)

    whole = part(0, len(rows))
    assert part(cut, len(rows)) + part(0, cut) == whole
    values = whole.measured().values
    shares = ("length.stop_rate", "length.truncation_rate", "length.aborted_rate")
    assert sum(values[share] for share in shares) == pytest.approx(1.0)


def test_a_history_makes_the_suggestion_surer_and_leaves_the_step_as_it_is() -> None:
    history = LengthHistory(steps=3)
    steps = [tally_lengths(range(at, at + 20), [2] * 20, STOP, 64) for at in (1, 2, 3, 30, 30)]
    found = [history.add(step).measured() for step in steps]
    assert found[0] == steps[0].measured()
    assert found[0].values[CONFIDENCE] < found[1].values[CONFIDENCE] < found[2].values[CONFIDENCE]
    alone = steps[2].measured().values
    others = {name: value for name, value in found[2].values.items() if "suggested" not in name}
    assert others == {name: value for name, value in alone.items() if "suggested" not in name}
    assert found[4].values[SUGGESTED] == 49


def test_a_step_that_cannot_say_how_answers_ended_is_no_history() -> None:
    history = LengthHistory()
    unknown = tally_lengths([3], [1], (), None)
    assert history.add(unknown) == unknown


class Status(Enum):
    TRUNCATED = "truncated"
    COMPLETED = "completed"


@pytest.mark.parametrize(
    ("reason", "share"),
    [
        (Status.TRUNCATED, "truncation"),
        (Status.COMPLETED, "stop"),
        ({"type": "length", "length": 8}, "truncation"),
        ("EOS_TOKEN", "stop"),
        ("cancelled", "aborted"),
        ("no such word", "aborted"),
        ({}, "aborted"),
    ],
    ids=str,
)
def test_words_enums_and_mappings_of_engines_are_understood_and_others_left_to_the_rule(
    reason: object, share: str
) -> None:
    values = tally_lengths([4], [7], STOP, 8, finish_reasons=[reason]).measured().values
    rates = {name: values[f"length.{name}_rate"] for name in ("stop", "truncation", "aborted")}
    assert {name for name, rate in rates.items() if rate} == {share}
