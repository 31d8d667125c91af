"""T9 to T11: markers that are tokens, markers that are damaged, markers that are looked for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.markers import (
    check_near_misses,
    check_response_marker,
    check_specials,
    near_miss_pattern,
    near_misses,
    occurrences,
)
from rlvitals.preflight.passage import Passage
from tests.client.preflight.chatml import LLAMA_TEMPLATE, TEMPLATE, facts, only, rendering, verdicts


def test_t9_llamas_template_on_chatml_markers_is_named_with_key_and_fix() -> None:
    tokens = facts()
    finding = only(check_specials(tokens, rendering(tokens, LLAMA_TEMPLATE)))
    assert finding.verdict is Verdict.FATAL
    assert finding.subject == "The chat template is Llama 3's, not this tokenizer's"
    assert "'<|eot_id|>' is 10 ordinary ids" in finding.evidence
    assert "this tokenizer has <|im_start|>, <|im_end|>" in finding.evidence
    assert finding.where == "tokenizer_config.json: chat_template"
    assert "chat_template" in finding.fix


def test_t9_the_tokenizers_own_markers_are_fine() -> None:
    tokens = facts()
    assert verdicts(check_specials(tokens, rendering(tokens))) == [Verdict.OK]


def test_t9_a_think_tag_as_ordinary_text_is_only_said() -> None:
    thinking = TEMPLATE.replace("assistant\n", "assistant\n<think>\n")
    tokens = facts()
    assert verdicts(check_specials(tokens, rendering(tokens, thinking))) == [Verdict.INFO]
    tokens = facts(added=("<think>",))
    assert verdicts(check_specials(tokens, rendering(tokens, thinking))) == [Verdict.OK]


@pytest.mark.parametrize(
    "damaged", ["<|im_end |>", "<im_end>", "<|Im_end|>", "<|im_end|", "|im_end|>", "< |im_end|>", "<|IM_START|>"]
)
def test_t10_each_damaged_form_is_found(damaged: str) -> None:
    tokens = facts()
    finding = only(check_near_misses(tokens, None, [Passage(text=f"so {damaged} it ends", where="a.jsonl:7")]))
    assert finding.verdict is Verdict.WARN
    assert finding.where == "a.jsonl:7"
    assert "ordinary ids" in finding.evidence


@pytest.mark.parametrize(
    "healthy",
    [
        "<|im_end|>",
        " <|im_end|>\n",
        "im_end",
        "a < b and b > im_end",
        "the <table>",
        "x |im_end",
        "<|im_start|>user",
    ],
)
def test_t10_whole_markers_and_plain_words_are_not(healthy: str) -> None:
    tokens = facts()
    assert verdicts(check_near_misses(tokens, None, [Passage(text=healthy)])) == [Verdict.OK]


def test_t10_looks_into_the_template_too() -> None:
    tokens = facts()
    broken = TEMPLATE.replace("<|im_end|>", "<|im_end |>")
    finding = only(check_near_misses(tokens, rendering(tokens, broken), []))
    assert finding.verdict is Verdict.WARN
    assert finding.where.endswith("chat_template")


def test_a_tokenizer_without_markers_has_none_to_damage() -> None:
    tokens = facts(special=(), eos_token=None, pad_token=None)
    assert near_miss_pattern(tokens) is None
    assert verdicts(check_near_misses(tokens, None, [Passage(text="<|im_end |>")])) == [Verdict.SKIPPED]


def test_names_of_reserved_tokens_are_left_out() -> None:
    tokens = facts(added=("<|reserved_special_token_5|>",))
    pattern = near_miss_pattern(tokens)
    assert pattern is not None
    assert near_misses(tokens, pattern, "<reserved_special_token_5>") == []


def test_occurrences_are_contiguous() -> None:
    assert occurrences([1, 2, 3, 1, 2], [1, 2]) == 2
    assert occurrences([1, 3, 2], [1, 2]) == 0
    assert occurrences([1, 2], []) == 0


def test_t11_the_templates_own_marker_stands_once_in_each_turn() -> None:
    tokens = facts()
    assert verdicts(check_response_marker(tokens, rendering(tokens))) == [Verdict.OK]
    assert verdicts(check_response_marker(tokens, rendering(tokens), "<|im_start|>assistant\n")) == [Verdict.OK]


def test_t11_a_marker_that_merges_with_its_context_is_not_found() -> None:
    tokens = facts()
    turn = "{{ m.role }} {{ m.content }}\n\n{{ '\nA:' if m.role == 'user' else '' }}"
    template = "{% for m in messages %}" + turn + "{% endfor %}"
    merging = template.replace("\n\n{{ '\nA:'", "\n{{ '\nA:'")
    finding = only(check_response_marker(tokens, rendering(tokens, merging), "\nA:"))
    assert finding.verdict is Verdict.FATAL
    assert "stands 0 times where 2 assistant turns begin" in finding.evidence
    assert "in context the text is" in finding.evidence
    assert verdicts(check_response_marker(tokens, rendering(tokens, template), "\nA:")) == [Verdict.OK]


def test_t11_a_marker_that_is_nowhere_says_so() -> None:
    tokens = facts()
    finding = only(check_response_marker(tokens, rendering(tokens), "### Response:"))
    assert finding.verdict is Verdict.FATAL
    assert "does not occur" in finding.evidence


def test_t11_a_template_of_another_tokenizer_is_t9s_to_tell() -> None:
    tokens = facts()
    foreign = rendering(tokens, LLAMA_TEMPLATE)
    assert verdicts(check_response_marker(tokens, foreign)) == [Verdict.SKIPPED]
    assert verdicts(check_response_marker(tokens, foreign, "<|im_start|>assistant")) == [Verdict.FATAL]


def test_t11_a_template_that_opens_every_answer_is_allowed_one_more() -> None:
    tokens = facts()
    always = TEMPLATE.partition("{% if add")[0] + "<|im_start|>assistant\n"
    assert verdicts(check_response_marker(tokens, rendering(tokens, always))) == [Verdict.OK]


def test_t9_llama_2_wrote_inst_as_ordinary_text() -> None:
    instructing = "{% for m in messages %}[INST] {{ m.content }} [/INST]{% endfor %}"
    tokens = facts()
    assert verdicts(check_specials(tokens, rendering(tokens, instructing))) == [Verdict.FATAL]
    tokens = facts(added=("<0x0A>",))
    assert verdicts(check_specials(tokens, rendering(tokens, instructing))) == [Verdict.INFO]


def test_t9_words_in_brackets_are_no_markers() -> None:
    tokens = facts()
    noting = TEMPLATE.replace("assistant\n", "assistant\n[NOTE] <br> a<b>c")
    assert verdicts(check_specials(tokens, rendering(tokens, noting))) == [Verdict.OK]


@given(st.text("<>|im_end /IMEND", max_size=12), st.text("<>|ab ", max_size=4))
@settings(max_examples=30, deadline=None)
def test_t10_a_whole_marker_is_never_taken_for_a_damaged_one(before: str, after: str) -> None:
    tokens = facts()
    pattern = near_miss_pattern(tokens)
    assert pattern is not None
    assert "<|im_end|>" not in near_misses(tokens, pattern, f"{before}<|im_end|>{after}")


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_occurrences_are_those_that_a_string_search_finds(ids: list[int], marker: list[int]) -> None:
    text, sought = ("".join(map(str, part)) for part in (ids, marker))
    assert occurrences(ids, marker) == sum(text.startswith(sought, at) for at in range(len(text)))
