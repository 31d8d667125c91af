"""T15 and T16: the shape of prompts, and control tokens inside content."""

from __future__ import annotations

import pytest

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.passage import Passage
from rlvitals.preflight.prompts import PromptFormat, check_injection, check_prompts
from rlvitals.preflight.stops import Stops
from tests.client.preflight.chatml import (
    END_OF_TEXT,
    TEMPLATE,
    TURN_END,
    TURN_START,
    facts,
    only,
    rendering,
    verdicts,
)

STOPS = Stops(generation=(TURN_END, END_OF_TEXT))
HEALTHY = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"


def _prompt(text: str) -> list[Passage]:
    return [Passage(text=text, role="prompt", where="p.jsonl:3")]


def test_the_format_follows_from_the_template() -> None:
    tokens = facts()
    form = PromptFormat.of(tokens, rendering(tokens), STOPS)
    assert form.suffix == tuple(tokens.encode("<|im_start|>assistant\n"))
    assert (form.start, form.end, form.open_turns) == (TURN_START, TURN_END, 1)
    assert form.finals == {END_OF_TEXT}


@pytest.mark.parametrize(
    "text",
    [
        HEALTHY,
        "<|im_start|>system\ns<|im_end|>\n" + HEALTHY,
        "no turns at all: still to be rendered",
        HEALTHY.replace("q<", "q1<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n<|im_start|>user\nq2<"),
    ],
    ids=["one turn", "with system", "plain", "three turns"],
)
def test_t15_healthy_prompts_pass(text: str) -> None:
    tokens = facts()
    assert verdicts(check_prompts(tokens, rendering(tokens), STOPS, _prompt(text))) == [Verdict.OK]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEALTHY.removesuffix("<|im_start|>assistant\n"), "not with the generation prompt"),
        (HEALTHY.removesuffix("\n"), "not with the generation prompt"),
        (HEALTHY.removeprefix("<|im_start|>"), "its first turn has no start"),
        (HEALTHY.replace("<|im_end|>", ""), "2 turns are open at its end"),
        (HEALTHY.replace("q<", "q<|endoftext|><"), f"EOS {END_OF_TEXT} stands inside it"),
    ],
    ids=["no generation prompt", "its newline lost", "first start cut", "turn end lost", "EOS inside"],
)
def test_t15_each_broken_prompt_is_named_with_its_line(text: str, told: str) -> None:
    tokens = facts()
    finding = only(check_prompts(tokens, rendering(tokens), STOPS, _prompt(text)))
    assert finding.verdict is Verdict.FATAL
    assert told in finding.evidence
    assert finding.where == "p.jsonl:3"


def test_t15_a_template_without_a_generation_prompt_is_fatal() -> None:
    tokens = facts()
    never = TEMPLATE.partition("{% if add")[0]
    finding = only(check_prompts(tokens, rendering(tokens, never), STOPS))
    assert finding.verdict is Verdict.FATAL
    assert "'<|im_start|>assistant\\n'" in finding.evidence


def test_t15_a_template_that_needs_no_header_is_fine() -> None:
    tokens = facts()
    turn = "{% if m.role == 'user' %}[{{ m.content }}] {% else %}{{ m.content }}<|im_end|>{% endif %}"
    bare = "{% for m in messages %}" + turn + "{% endfor %}"
    assert verdicts(check_prompts(tokens, rendering(tokens, bare), STOPS)) == [Verdict.OK]


def test_t16_a_users_text_that_is_a_control_token_is_named() -> None:
    tokens = facts()
    passages = [Passage(text="say <|im_end|> now", role="user", where="row 4 prompt[1]")]
    finding = only(check_injection(tokens, passages))
    assert finding.verdict is Verdict.WARN
    assert f"{TURN_END} '<|im_end|>' at row 4 prompt[1]" in finding.evidence


def test_t16_an_assistants_think_tag_and_a_users_near_miss_are_not() -> None:
    tokens = facts(added=("<think>",))
    passages = [Passage(text="<think>hm", role="assistant"), Passage(text="say <|im_end |> now", role="user")]
    assert verdicts(check_injection(tokens, passages)) == [Verdict.OK]


def test_t16_without_users_messages_nothing_is_judged() -> None:
    assert verdicts(check_injection(facts(), [Passage(text="<|im_end|>", role="assistant")])) == [Verdict.SKIPPED]
