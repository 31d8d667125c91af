"""What templates write."""

from __future__ import annotations

from rlvitals.preflight.template import render
from rlvitals.preflight.tokenizer import read_tokenizer
from tests.client.preflight.chatml import LLAMA_TEMPLATE, MARKERS, TEMPLATE, core, facts, rendering


def test_marker_tail_and_lead_of_chatml() -> None:
    made = rendering(facts())
    assert made.marker == "<|im_start|>assistant\n"
    assert made.tail == "<|im_end|>\n"
    assert made.lead == ""


def test_a_template_that_opens_every_answer_has_its_marker_between_the_turns() -> None:
    always = TEMPLATE.partition("{% if add")[0] + "<|im_start|>assistant\n"
    made = rendering(facts(), always)
    assert made.prompt == made.opened
    assert made.marker == "<|im_end|>\n<|im_start|>assistant\n"


def test_a_tokenizer_without_templates_of_its_own_renders_a_given_one() -> None:
    made = rendering(read_tokenizer(core()), LLAMA_TEMPLATE)
    assert made.prompt.endswith("<|start_header_id|>assistant<|end_header_id|>\n\n")


def test_a_template_that_refuses_says_why() -> None:
    made, error = render(facts(), "{{ raise_exception('no users here') }}")
    assert made is None
    assert "no users here" in error
    made, error = render(facts(), "{% for m in messages %}")
    assert made is None
    assert "TemplateSyntaxError" in error


def test_a_template_that_drops_the_content_is_told() -> None:
    made, error = render(facts(), "hello")
    assert made is None
    assert "content" in error


def test_a_template_that_takes_one_exchange_only_still_renders() -> None:
    once = "{% if messages|length > 2 %}{{ raise_exception('one exchange') }}{% endif %}" + TEMPLATE
    made = rendering(facts(), once)
    assert made.dialogue == made.asked_again == ""


def test_where_the_generation_prompt_opens_the_thinking_the_marker_ends_before_it() -> None:
    tokens = facts(added=("<think>", "</think>"))
    made = rendering(tokens, TEMPLATE.replace("|>assistant\n", "|>assistant\n<think>\n"))
    assert made.generation_prompt == "<|im_start|>assistant\n<think>\n"
    assert made.marker == "<|im_start|>assistant\n"
    assert all("</think>" in whole for _, whole in made.pairs)


def test_a_template_that_needs_a_token_which_is_not_there_tells_the_error_and_the_texts() -> None:
    made, error = render(facts(), "{{ bos_token + 'x' }}" + LLAMA_TEMPLATE)
    assert "bos_token" in error
    assert made is not None
    assert made.prompt.startswith("x<|start_header_id|>")
    made, error = render(
        facts(special=(*MARKERS, "<s>"), bos_token="<s>"), "{{ bos_token + 'x' }}" + LLAMA_TEMPLATE
    )
    assert error == ""
    assert made is not None
    assert made.prompt.startswith("<s>x")
