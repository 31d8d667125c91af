"""T6 to T8: stops, EOS and padding."""

from __future__ import annotations

import pytest

from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.model import GenerationFacts, ModelFacts
from rlvitals.preflight.stops import Stops, check_eos, check_pad, check_turn_end, turn_end
from tests.client.preflight.chatml import (
    END_OF_TEXT,
    LLAMA_TEMPLATE,
    ROWS,
    TURN_END,
    TURN_START,
    facts,
    only,
    rendering,
    verdicts,
)

BOTH = (TURN_END, END_OF_TEXT)


def test_the_turn_end_follows_from_the_template() -> None:
    tokens = facts()
    assert turn_end(tokens, rendering(tokens)) == TURN_END


def test_t6_a_base_models_eos_does_not_stop_a_chat_turn() -> None:
    tokens = facts()
    finding = only(check_turn_end(tokens, rendering(tokens), Stops(generation=(END_OF_TEXT,), tokenizer=TURN_END)))
    assert finding.verdict is Verdict.FATAL
    assert "261 '<|im_end|>'" in finding.evidence
    assert f"eos_token_id = [{END_OF_TEXT}, {TURN_END}]" in finding.fix
    assert finding.where == "generation_config.json: eos_token_id"


@pytest.mark.parametrize(
    "stops",
    [
        Stops(generation=BOTH),
        Stops(generation=(END_OF_TEXT,), extra=(TURN_END,)),
        Stops(config=(TURN_END,)),
        Stops(tokenizer=TURN_END),
    ],
    ids=["one of two", "the sampler's own", "only the config", "only the tokenizer"],
)
def test_t6_it_is_enough_that_one_of_the_stops_is_the_turn_end(stops: Stops) -> None:
    tokens = facts()
    assert verdicts(check_turn_end(tokens, rendering(tokens), stops)) == [Verdict.OK]


def test_t6_a_turn_end_of_another_tokenizer_is_named() -> None:
    tokens = facts()
    finding = only(check_turn_end(tokens, rendering(tokens, LLAMA_TEMPLATE), Stops(generation=BOTH)))
    assert finding.verdict is Verdict.FATAL
    assert "'<|eot_id|>'" in finding.evidence
    assert finding.where.endswith("chat_template")


def test_t6_a_template_without_turn_ends_teaches_no_stop() -> None:
    tokens = facts()
    plain = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    assert verdicts(check_turn_end(tokens, rendering(tokens, plain), Stops(tokenizer=TURN_END))) == [Verdict.WARN]


def test_t6_without_a_template_nothing_is_judged() -> None:
    assert verdicts(check_turn_end(facts(), None, Stops())) == [Verdict.SKIPPED]


def test_t7_no_eos_at_all_is_fatal() -> None:
    assert verdicts(check_eos(facts(), None, Stops())) == [Verdict.FATAL]
    assert verdicts(check_eos(facts(), None, Stops(generation=()))) == [Verdict.FATAL]


def test_t7_an_eos_without_token_or_row_is_fatal() -> None:
    model = ModelFacts(name="m", rows=ROWS)
    assert verdicts(check_eos(facts(), model, Stops(generation=(ROWS - 1,)))) == [Verdict.FATAL]
    small = ModelFacts(name="m", rows=TURN_END)
    assert verdicts(check_eos(facts(), small, Stops(generation=(TURN_END,)))) == [Verdict.FATAL]
    assert verdicts(check_eos(facts(), model, Stops(generation=(TURN_END,)))) == [Verdict.OK]


def test_t7_an_ordinary_token_as_eos_is_a_warning() -> None:
    assert verdicts(check_eos(facts(), None, Stops(generation=(5,)))) == [Verdict.WARN]


@pytest.mark.parametrize(
    ("stops", "verdict"),
    [
        (Stops(generation=BOTH, config=(TURN_END,), tokenizer=TURN_END), Verdict.OK),
        (Stops(generation=(END_OF_TEXT,), config=(END_OF_TEXT,), tokenizer=TURN_END), Verdict.WARN),
        (Stops(generation=(TURN_END,), config=(END_OF_TEXT,), tokenizer=TURN_END), Verdict.WARN),
        (Stops(config=(TURN_END,), tokenizer=TURN_END), Verdict.OK),
    ],
    ids=["members of one set", "the tokenizer's missing", "the config's missing", "no generation config"],
)
def test_t7_who_names_an_eos_must_name_one_of_the_stops(stops: Stops, verdict: Verdict) -> None:
    assert verdicts(check_eos(facts(), None, stops)) == [verdict]


def test_t8_no_pad_token_is_a_warning() -> None:
    tokens = facts(pad_token=None)
    assert verdicts(check_pad(tokens, rendering(tokens), None, Stops(generation=BOTH))) == [Verdict.WARN]
    own = check_pad(tokens, rendering(tokens), None, Stops(generation=BOTH), own_padding=True)
    assert verdicts(own) == [Verdict.INFO]


def test_t8_pad_as_the_turns_end_is_a_warning_and_harmless_where_masks_go_by_position() -> None:
    tokens = facts(pad_token="<|im_end|>")
    finding = only(check_pad(tokens, rendering(tokens), None, Stops(generation=BOTH, tokenizer=TURN_END)))
    assert finding.verdict is Verdict.WARN
    assert "ends every turn" in finding.evidence
    stops = Stops(generation=BOTH, tokenizer=TURN_END)
    by_position = only(check_pad(tokens, rendering(tokens), None, stops, own_padding=True))
    assert by_position.verdict is Verdict.INFO
    assert "by position" in by_position.evidence


def test_t8_pad_as_the_tokenizers_eos_is_a_warning() -> None:
    tokens = facts(eos_token="<|endoftext|>")
    stops = Stops(generation=BOTH, tokenizer=END_OF_TEXT)
    assert verdicts(check_pad(tokens, rendering(tokens), None, stops)) == [Verdict.WARN]


def test_t8_pad_as_a_second_stop_is_said_without_a_warning() -> None:
    tokens = facts()
    stops = Stops(generation=BOTH, tokenizer=TURN_END)
    assert verdicts(check_pad(tokens, rendering(tokens), None, stops)) == [Verdict.INFO]
    assert verdicts(check_pad(tokens, None, None, stops)) == [Verdict.WARN], (
        "no template: it may be the turn's end"
    )


def test_t8_pad_beyond_the_rows_is_fatal_and_apart_from_stops_is_fine() -> None:
    tokens, alone = facts(), Stops(generation=(TURN_END,), tokenizer=TURN_END)
    small = ModelFacts(name="m", rows=END_OF_TEXT)
    assert verdicts(check_pad(tokens, rendering(tokens), small, alone)) == [Verdict.FATAL]
    enough = ModelFacts(name="m", rows=END_OF_TEXT + 1)
    assert verdicts(check_pad(tokens, rendering(tokens), enough, alone)) == [Verdict.OK]


def test_the_start_of_a_turn_is_no_stop() -> None:
    tokens = facts()
    assert TURN_START not in Stops(generation=BOTH, tokenizer=TURN_END).ids
    assert verdicts(check_turn_end(tokens, rendering(tokens), Stops(generation=(TURN_START,)))) == [Verdict.FATAL]


def test_t8_generation_that_pads_with_another_token_is_a_warning() -> None:
    tokens = facts()
    other = Stops(generation=(TURN_END,), tokenizer=TURN_END, sampler_pad=TURN_START)
    first, second = check_pad(tokens, rendering(tokens), None, other)
    assert (first.verdict, second.verdict) == (Verdict.WARN, Verdict.OK)
    assert "pad_token_id = tokenizer.pad_token_id" in first.fix
    same = Stops(generation=(TURN_END,), tokenizer=TURN_END, sampler_pad=END_OF_TEXT)
    assert verdicts(check_pad(tokens, rendering(tokens), None, same)) == [Verdict.OK]


def test_the_generation_configs_pad_wins_over_the_models() -> None:
    model, generation = ModelFacts(name="m", pad=4), GenerationFacts(name="g", pad=5)
    assert Stops.of(facts(), model, generation).sampler_pad == 5
    assert Stops.of(facts(), model, None).sampler_pad == 4
    assert Stops.of(facts(), model, GenerationFacts(name="g")).sampler_pad == 4
