"""T12 to T14 and T19: texts that join, and texts that come back."""

from __future__ import annotations

import pytest
from tokenizers import normalizers
from tokenizers.processors import TemplateProcessing

from rlvitals.preflight.boundaries import (
    check_bos,
    check_merge,
    check_prefix,
    check_text_round_trip,
    first_difference,
)
from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.tokenizer import read_tokenizer
from rlvitals.preflight.tokenizer_facts import TokenizerFacts
from tests.client.preflight.chatml import MARKERS, TEMPLATE, TURN_END, build, facts, only, rendering, verdicts


@pytest.mark.parametrize(
    ("prefix", "whole", "at"),
    [([], [1], None), ([1, 2], [1, 2, 3], None), ([1, 2], [1, 3], 1), ([1, 2], [1], 1), ([1], [], 0)],
)
def test_the_first_difference(prefix: list[int], whole: list[int], at: int | None) -> None:
    assert first_difference(prefix, whole) == at


def test_t12_a_template_that_only_appends_keeps_the_prompt() -> None:
    tokens = facts()
    assert verdicts(check_prefix(tokens, rendering(tokens))) == [Verdict.OK]


def test_t12_a_generation_prompt_that_no_finished_turn_has_is_told_with_its_place() -> None:
    tokens = facts(added=("<|plan|>",))
    made = rendering(tokens, TEMPLATE.replace("|>assistant\n", "|>assistant\n<|plan|>"))
    finding = only(check_prefix(tokens, made))
    assert finding.verdict is Verdict.WARN
    assert f"position {len(tokens.encode(made.prompt)) - 1}" in finding.evidence
    assert "'<|plan|>' becomes" in finding.evidence


def test_t12_a_template_that_rewrites_only_later_turns_is_told_too() -> None:
    unstable = TEMPLATE.replace("{{ m.content }}", "{{ m.content if messages|length < 4 else m.content|lower }}")
    tokens = facts()
    assert verdicts(check_prefix(tokens, rendering(tokens, unstable))) == [Verdict.WARN]
    trimming = TEMPLATE.replace("{{ m.content }}", "{{ m.content|trim }}")
    assert verdicts(check_prefix(tokens, rendering(tokens, trimming))) == [Verdict.OK]


def test_t13_a_newline_after_a_newline_is_one_id_together() -> None:
    tokens = facts()
    finding = only(check_merge(tokens, rendering(tokens)))
    assert finding.verdict is Verdict.INFO
    newline, two, hi = tokens.encode("\n")[0], tokens.encode("\n\n")[0], tokens.encode("Hi")[0]
    assert f"'\\nHi': [{newline}, {newline}, {hi}] apart, [{two}, {hi}] together" in finding.evidence


def test_t13_a_prompt_that_ends_with_a_marker_merges_with_nothing() -> None:
    tokens = facts(special=(*MARKERS, "<|answer|>"))
    made = rendering(tokens, TEMPLATE.replace("assistant\n", "assistant<|answer|>"))
    assert verdicts(check_merge(tokens, made)) == [Verdict.OK]


def _with_bos(template: str) -> TokenizerFacts:
    tokenizer = build(special=(*MARKERS, "<|bos|>"), bos_token="<|bos|>", template=template)
    bos = tokenizer.bos_token_id
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|bos|> $A", special_tokens=[("<|bos|>", bos)]
    )
    return read_tokenizer(tokenizer)


def test_t14_bos_from_template_and_tokenizer_is_one_too_many() -> None:
    tokens = _with_bos("<|bos|>" + TEMPLATE)
    drawn = rendering(tokens, "<|bos|>" + TEMPLATE)
    finding = only(check_bos(tokens, drawn))
    assert finding.verdict is Verdict.INFO, "a trainer that renders knows it"
    assert "add_special_tokens=False" in finding.fix
    prompts = [Passage(text="Hi", where="d:1"), Passage(text="<|bos|><|im_start|>user\nHi", where="d:2")]
    rendered = only(check_bos(tokens, drawn, prompts))
    assert (rendered.verdict, rendered.where) == (Verdict.WARN, "d:2")


def test_t14_bos_from_one_of_them_is_right() -> None:
    tokens = _with_bos(TEMPLATE)
    assert verdicts(check_bos(tokens, rendering(tokens))) == [Verdict.OK]
    tokens = facts(special=(*MARKERS, "<|bos|>"), bos_token="<|bos|>")
    assert verdicts(check_bos(tokens, rendering(tokens, "<|bos|>" + TEMPLATE))) == [Verdict.OK]


def test_t19_a_byte_tokenizer_gives_back_everything() -> None:
    assert verdicts(check_text_round_trip(facts(), [Passage(text="ሰላም 🎣\r\n")])) == [Verdict.OK]


def test_t19_a_normaliser_is_named() -> None:
    tokenizer = build()
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    finding = only(check_text_round_trip(read_tokenizer(tokenizer)))
    assert finding.verdict is Verdict.INFO
    assert "normalised to NFC" in finding.evidence


def test_t19_a_lone_surrogate_is_left_to_t18() -> None:
    assert verdicts(check_text_round_trip(facts(), [Passage(text="\ud83d")])) == [Verdict.OK]


def test_the_turn_end_is_kept_by_decoding() -> None:
    assert facts().decode([TURN_END]) == "<|im_end|>"


def test_t12_a_template_that_drops_earlier_thinking_is_said() -> None:
    tokens = facts()
    dropping = TEMPLATE.replace("{{ m.content }}", "{{ m.content.split('</think>')[-1] }}")
    told, kept = check_prefix(tokens, rendering(tokens, dropping))
    assert (told.verdict, kept.verdict) == (Verdict.INFO, Verdict.OK)
    assert "thinking of earlier turns" in told.subject


def test_t13_sampled_completions_are_tried_too() -> None:
    tokens = facts(special=(*MARKERS, "<|answer|>"))
    made = rendering(tokens, TEMPLATE.replace("assistant\n", "assistant"))
    assert verdicts(check_merge(tokens, made, ["plain", "\ud83d"])) == [Verdict.OK]
    finding = only(check_merge(tokens, rendering(tokens), ["\n\n\nso"]))
    assert "'\\n\\n\\nso'" in finding.evidence
