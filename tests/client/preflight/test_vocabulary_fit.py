"""T1 to T5: ids, rows and added tokens."""

from __future__ import annotations

import pytest

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.model import GenerationFacts, ModelFacts
from rlvitals.preflight.vocabulary_fit import (
    check_added_round_trip,
    check_fit,
    check_hijack,
    check_resized,
    check_unassigned,
)
from tests.client.preflight.chatml import ROWS, SIZE, facts, only, verdicts


def _model(rows: int, head_rows: int | None = None, config_rows: int | None = None) -> ModelFacts:
    return ModelFacts(name="model", rows=rows, rows_from="the test", head_rows=head_rows, config_rows=config_rows)


@pytest.mark.parametrize(("rows", "verdict"), [(SIZE, Verdict.OK), (259, Verdict.OK), (258, Verdict.FATAL)])
def test_t1_an_ordinary_id_without_a_row_is_fatal_and_one_more_row_is_enough(rows: int, verdict: Verdict) -> None:
    assert verdicts(check_fit(facts(), _model(rows))) == [verdict]


def test_t1_names_the_ids_that_have_no_row() -> None:
    finding = only(check_fit(facts(), _model(250)))
    assert "9 ids (250-258)" in finding.evidence
    assert "the tokenizer that belongs to this model" in finding.fix


def test_t1_weights_and_config_that_differ_in_rows_are_told() -> None:
    finding = only(check_fit(facts(), _model(ROWS, head_rows=ROWS, config_rows=SIZE)))
    assert finding.verdict is Verdict.WARN
    assert "vocab_size 262" in finding.evidence
    assert verdicts(check_fit(facts(), _model(ROWS, head_rows=ROWS, config_rows=ROWS))) == [Verdict.OK]


def test_without_rows_nothing_is_judged() -> None:
    for check in (check_fit, check_unassigned, check_resized):
        assert verdicts(check(facts(), None)) == [Verdict.SKIPPED]


def test_t2_rows_without_a_token_are_counted_with_their_ranges_and_the_reason() -> None:
    finding = only(check_unassigned(facts(), _model(ROWS)))
    assert finding.verdict is Verdict.INFO
    assert "26 of 288 embedding rows" in finding.evidence
    assert "ids 262-287" in finding.evidence
    assert "suppress_tokens = [*range(262, 288)]" in finding.fix


def test_t2_it_is_a_warning_when_the_sampler_is_known_not_to_mask_them() -> None:
    assert verdicts(check_unassigned(facts(), _model(ROWS), masked=False)) == [Verdict.WARN]


@pytest.mark.parametrize(
    ("suppressed", "verdict"), [(range(262, 288), Verdict.OK), (range(262, 287), Verdict.INFO), ((), Verdict.INFO)]
)
def test_t2_suppressed_rows_are_fine_and_all_but_one_are_not(suppressed: range, verdict: Verdict) -> None:
    generation = GenerationFacts(name="g", suppressed=frozenset(suppressed))
    assert verdicts(check_unassigned(facts(), _model(ROWS), generation)) == [verdict]


def test_t2_a_full_vocabulary_is_fine() -> None:
    assert verdicts(check_unassigned(facts(), _model(SIZE), masked=False)) == [Verdict.OK]


def test_t3_an_added_token_beyond_the_embedding_names_the_resize() -> None:
    finding = only(check_resized(facts(added=("<tool_call>",)), _model(SIZE)))
    assert finding.verdict is Verdict.FATAL
    assert "262 '<tool_call>'" in finding.evidence
    assert "resize_token_embeddings" in finding.fix
    assert verdicts(check_resized(facts(added=("<tool_call>",)), _model(SIZE + 1))) == [Verdict.OK]


def test_t4_a_special_token_with_a_letter_of_the_byte_table_decodes_to_a_byte() -> None:
    finding = only(check_added_round_trip(facts(added=("<|é|>",))))
    assert finding.verdict is Verdict.WARN
    assert "'<|\ufffd|>'" in finding.evidence


def test_t4_a_letter_outside_the_byte_table_comes_back() -> None:
    assert verdicts(check_added_round_trip(facts(added=("<|中|>",)))) == [Verdict.OK]


def test_t5_an_added_token_on_a_byte_is_fatal() -> None:
    tokens = facts(added=("£",))
    finding = only(check_hijack(tokens))
    assert finding.verdict is Verdict.FATAL
    assert "'£' is id" in finding.evidence
    assert "\ufffd" in finding.evidence
    assert verdicts(check_added_round_trip(tokens)) == [Verdict.OK], "told once"


def test_t5_a_word_made_special_is_a_warning_and_made_added_is_nothing() -> None:
    assert verdicts(check_hijack(facts(special=("<|im_end|>", "<|endoftext|>", "Hi")))) == [Verdict.WARN]
    assert verdicts(check_hijack(facts(added=("Hi",)))) == [Verdict.OK]


def test_t5_two_characters_outside_the_base_vocabulary_take_no_id() -> None:
    assert verdicts(check_hijack(facts(added=("££",)))) == [Verdict.OK]
