"""Templates of released models, as TRL ships them beside variants for training that keep what was sampled."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlvitals.preflight.boundaries import check_prefix
from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.markers import check_specials
from rlvitals.preflight.stops import Stops, check_turn_end, turn_end
from rlvitals.preflight.template import render
from tests.client.preflight.chatml import rendering, verdicts
from tests.client.preflight.conftest import shipped_tokens
from tests.client.probes.conftest import REPOSITORY

PREFIX_KEEPING = (
    "qwen2_5_training",
    "qwen3_training",
    "qwen3_5_think_training",
    "qwen3_6_training",
    "qwen3_8_training",
)
THINKING_DROPPED = ("qwen3", "qwen3_5_think", "qwen3_6")


def _template(name: str) -> str:
    spec = find_spec("trl")
    file = Path(spec.origin).parent / "chat_templates" / f"{name}.jinja" if spec and spec.origin else None
    if file is None or not file.exists():
        pytest.skip(f"NO TEMPLATE {name}: this TRL does not ship it")
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PREFIX_KEEPING)
def test_t12_templates_made_for_training_keep_every_prompt(name: str) -> None:
    tokens = shipped_tokens("qwen3")
    assert verdicts(check_prefix(tokens, rendering(tokens, _template(name)))) == [Verdict.OK]


@pytest.mark.parametrize("name", THINKING_DROPPED)
def test_t12_their_originals_drop_earlier_thinking(name: str) -> None:
    tokens = shipped_tokens("qwen3")
    assert verdicts(check_prefix(tokens, rendering(tokens, _template(name)))) == [Verdict.INFO, Verdict.OK]


def test_t12_a_template_that_cuts_the_thinking_it_opened_is_a_warning() -> None:
    tokens = shipped_tokens("deepseek_v3")
    assert verdicts(check_prefix(tokens, rendering(tokens, _template("deepseek_r1_distill")))) == [Verdict.WARN]


@pytest.mark.parametrize(
    ("template", "tokenizer", "verdict"),
    [
        ("llama3", "llama3_1", Verdict.OK),
        ("llama3", "qwen3", Verdict.FATAL),
        ("qwen3", "llama3_1", Verdict.FATAL),
        ("qwen3", "qwen3", Verdict.OK),
    ],
)
def test_t9_each_template_fits_its_own_tokenizer_only(template: str, tokenizer: str, verdict: Verdict) -> None:
    tokens = shipped_tokens(tokenizer)
    made, _ = render(tokens, _template(template))
    assert next(iter(check_specials(tokens, made))).verdict is verdict


@pytest.mark.parametrize("name", ["qwen3", "llama3_1", "deepseek_v3"])
def test_turn_ends_and_generation_prompts_are_those_that_were_measured_apart_from_us(name: str) -> None:
    file = REPOSITORY.parent / "shared" / "research" / "tokenizers" / "preflight_probe.json"
    if not file.exists():
        pytest.skip("NOT COMPARED WITH THE MEASURED TEMPLATES: ../shared/research/tokenizers is absent")
    measured = json.loads(file.read_text(encoding="utf-8"))[f"template {name}"]
    tokens = shipped_tokens(name)
    made = rendering(tokens, tokens.chat_template or "")
    assert turn_end(tokens, made) == measured["turn_end_ids"][0]
    assert tokens.encode(made.tail) == measured["turn_end_ids"]
    last = tokens.encode(made.generation_prompt)
    assert measured["gen_suffix_ids"][-len(last) :] == last


def test_t6_llama_3_as_it_was_shipped_did_not_stop_at_its_turn_end() -> None:
    tokens = shipped_tokens("llama3_1")
    made = rendering(tokens, tokens.chat_template or "")
    (finding,) = check_turn_end(tokens, made, Stops(generation=(128_001,), tokenizer=tokens.eos))
    assert finding.verdict is Verdict.FATAL
    assert "128009 '<|eot_id|>'" in finding.evidence
    assert "[128001, 128009]" in finding.fix
