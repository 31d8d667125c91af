"""T20 and T21: one tokenizer everywhere, padded on the side that generation needs."""

from __future__ import annotations

from typing import Any

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.identity import check_padding_side, check_same
from rlvitals.preflight.model import ModelFacts
from rlvitals.preflight.tokenizer import read_tokenizer
from tests.client.preflight.chatml import LLAMA_TEMPLATE, MARKERS, core, facts, only, verdicts


def test_t20_equal_files_read_twice_are_the_same() -> None:
    assert verdicts(check_same(facts(), {"reference": facts(), "rollout": facts()})) == [Verdict.OK, Verdict.OK]


def test_t20_one_more_token_is_another_tokenizer() -> None:
    finding = only(check_same(facts(), {"reward": facts(added=("<think>",))}))
    assert finding.verdict is Verdict.FATAL
    assert finding.subject == "reward: another tokenizer"
    assert "vocabulary" in finding.evidence
    assert "id 262 is None here and '<think>' there" in finding.evidence


def test_t20_the_same_words_with_another_flag_or_template_differ_in_that_part_only() -> None:
    flag = only(check_same(facts(added=("<think>",)), {"rollout": facts(special=(*MARKERS, "<think>"))}))
    assert flag.verdict is Verdict.FATAL
    assert "SHA-256 of added tokens" in flag.evidence
    template = only(check_same(facts(), {"rollout": facts(template=LLAMA_TEMPLATE)}))
    assert "SHA-256 of chat template" in template.evidence


def test_t20_settings_of_padding_make_no_other_tokenizer() -> None:
    assert verdicts(check_same(facts(), {"reference": facts(padding_side="right")})) == [Verdict.OK]
    assert verdicts(check_same(facts(), {})) == [Verdict.SKIPPED]


def test_t21_right_is_wrong_unless_the_trainer_pads_itself() -> None:
    right = facts(padding_side="right")
    assert verdicts(check_padding_side(facts(), None)) == [Verdict.OK]
    assert verdicts(check_padding_side(right, None)) == [Verdict.WARN]
    assert verdicts(check_padding_side(right, None, own_padding=True)) == [Verdict.INFO]


def test_t21_an_encoder_decoder_model_pads_as_it_likes() -> None:
    model = ModelFacts(name="t5", rows=300, encoder_decoder=True)
    assert verdicts(check_padding_side(facts(padding_side="right"), model)) == [Verdict.SKIPPED]


def test_t20_the_same_file_without_a_template_is_the_same_vocabulary() -> None:
    assert verdicts(check_same(facts(), {"rollout": read_tokenizer(core())})) == [Verdict.OK]


def test_t20_other_libraries_are_compared_by_ids(encoding: Any, qwen_tokenizer: Any) -> None:
    native = read_tokenizer(encoding)
    apart = only(check_same(facts(), {"rollout": native}))
    assert apart.verdict is Verdict.FATAL
    assert "in tiktoken" in apart.evidence
    # Qwen's own tokenizer of Hugging Face normalises to NFC before, its tiktoken one does not
    told = only(check_same(read_tokenizer(qwen_tokenizer), {"rollout": native}))
    assert told.verdict is Verdict.FATAL
    assert "u0301" in told.evidence
