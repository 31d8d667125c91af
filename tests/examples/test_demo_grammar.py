"""The grammar ends within the twin's limit and beyond the unhealthy run's; the reward has contrast."""

from __future__ import annotations

import itertools
import statistics

import pytest

from tests.examples.conftest import CACHE

pytest.importorskip("trl", reason="the TRL extra is not installed")


def test_the_unhealthy_limit_lies_below_the_grammar_and_the_twins_above() -> None:
    import demo_grammar
    import demo_grpo
    import demo_tokenizer

    tokenizer = demo_tokenizer.load(CACHE)
    texts = list(itertools.islice(demo_grammar.sentences(1), 500))
    lengths = [len(ids) + 1 for ids in tokenizer(texts)["input_ids"]]
    assert demo_grpo.FLAVOURS["unhealthy"].max_completion_length < min(lengths)
    assert demo_grpo.FLAVOURS["twin"].max_completion_length > 1.5 * max(lengths)


def test_rewards_differ_between_sentences_cut_or_whole() -> None:
    import demo_grammar

    texts = list(itertools.islice(demo_grammar.sentences(1), 200))
    for shown in (texts, [text[:24] for text in texts]):
        rewards = demo_grammar.pleasantness(shown)
        assert statistics.stdev(rewards) > 0.2
        assert len({round(reward, 6) for reward in rewards}) > 10
        assert all(-1 <= reward <= 1 for reward in rewards)


def test_a_forecast_without_wind_is_worth_less() -> None:
    import demo_grammar

    with_wind, without, nonsense = demo_grammar.pleasantness([" sunny at noon, no wind.", " sunny at noon.", ""])
    assert with_wind > without > nonsense
