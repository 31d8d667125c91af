"""What is told of a completion: its bytes, its heat, its scripts, what changed; and the address that says so."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest

from rlvitals.contract.report import Text, TokenDetail
from rlvitals.contract.view import TextView
from rlvitals_dashboard import token_heat
from rlvitals_dashboard.script_mix import script_mix
from rlvitals_dashboard.spelling import BREAKS, plainly, spell
from rlvitals_dashboard.text_diff import WORDS_MAX, compare, is_cut
from rlvitals_dashboard.text_panel import difference
from rlvitals_dashboard.text_view import View, address
from rlvitals_dashboard.token_heat import BY_KEY, look, offered, value_at, worst
from tests.dashboard.completions import HALF, SPECIAL, UNASSIGNED, damaged, spelt


def shown(ids: list[int], detail: TokenDetail) -> list[tuple[tuple[int, ...], str]]:
    return [(tuple(t.token_id for t in c.tokens), "".join(p.shown for p in c.pieces)) for c in spell(ids, detail)]


def test_tokens_that_make_one_character_together_are_shown_as_one() -> None:
    ids, detail = spelt("a你b")
    assert shown(list(ids), detail) == [((97,), "a"), ((0xE4, 0xBD, 0xA0), "你"), ((98,), "b")]


def test_bytes_that_are_no_character_are_spelt_where_a_decoder_put_one_replacement() -> None:
    text = damaged(1, 0, 1)
    assert text.tokens is not None
    tail = shown([HALF, 53, UNASSIGNED, HALF, SPECIAL], text.tokens)
    assert tail == [
        ((HALF,), "\\xE4\\xBD"),
        ((53,), "5"),
        ((UNASSIGNED,), "[unassigned id 151900]"),
        ((HALF,), "\\xE4\\xBD"),
        ((SPECIAL,), "<|im_end|>"),
    ]


def as_kept(text: Text) -> TextView:
    told = {f.name: getattr(text, f.name) for f in fields(text) if f.name != "seq"}
    return TextView(attempt="t1", number=text.seq, **told)


def test_two_damaged_completions_are_compared_by_their_bytes() -> None:
    one, other = as_kept(damaged(1, 0, 1)), as_kept(damaged(2, 0, 2))
    assert plainly(one).endswith("\udce4\udcbd5[unassigned id 151900]\udce4\udcbd<|im_end|>")
    assert "each byte is the same" in str(difference(one, other))
    changed = replace(other, token_ids=(*other.token_ids[:-2], 53, SPECIAL))
    told = [(c.kind, c.text) for c in compare(plainly(one), plainly(changed)) if c.kind != "same"]
    assert told == [("gone", "\udce4\udcbd"), ("new", "5")]
    assert "\\\\xE4" in str(difference(one, changed))
    assert plainly(replace(one, tokens=None)) == one.completion


def test_every_token_is_in_exactly_one_cluster_whatever_the_bytes() -> None:
    pieces = {"1": "e4bda0e5", "2": "a5", "3": "bd", "4": "", "5": "ff00", "6": "f0", "7": "zz", "8": "efbfbd"}
    detail = TokenDetail(pieces=pieces, kinds={"9": "special", "6": "added"})
    ids = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 4, 1, 4, 2, 8, 5, 5, 3]
    found = list(spell(ids, detail))
    assert [token.place for cluster in found for token in cluster.tokens] == list(range(len(ids)))
    assert "added" in BREAKS
    assert next(c for c in found if c.tokens[0].token_id == 8).is_odd  # the model wrote U+FFFD itself
    assert list(spell([], detail)) == []


def test_a_very_long_completion_of_bad_bytes_is_spelt_quickly() -> None:
    detail = TokenDetail(pieces={"1": "ff", "2": "e4bd"})
    assert sum(len(c.tokens) for c in spell([1, 2] * 16_000, detail)) == 32_000


def test_heat_keeps_nan_the_infinities_and_missing_apart() -> None:
    scores = {
        "logp": (-0.5, math.nan, -math.inf, None, -math.inf, -900.0),
        "ref_logp": (-0.5, -0.5, -0.5, -0.5, -math.inf, -0.5),
    }
    detail = TokenDetail(scores=scores)
    kl = BY_KEY["kl"]
    values = [value_at(kl, detail, place) for place in range(7)]
    assert [look(kl, value) for value in values] == [
        "heat-0",
        "nan",
        "pos-inf",
        "missing",
        "nan",
        "pos-inf",
        "missing",
    ]
    assert worst(kl, [0.0, 3.0, None]) == 3.0
    assert math.isnan(worst(kl, [9.0, math.nan]) or 0.0)
    assert worst(kl, [None]) is None
    assert [heat.key for heat in offered(detail)] == ["kl", "surprise"]
    assert offered(None) == ()


@pytest.mark.parametrize(
    ("ratio", "expected"), [(1.0, "heat-0"), (1.3, "heat-2"), (0.7, "cold-2"), (0.0, "cold-4"), (9.0, "heat-4")]
)
def test_a_ratio_below_one_is_cold_and_above_hot_by_its_logarithm(ratio: float, expected: str) -> None:
    assert look(BY_KEY["ratio"], ratio) == expected
    assert look(BY_KEY["advantage"], -1.5) == "cold-3"
    assert {heat.key for heat in token_heat.HEATS} == set(BY_KEY)


def test_scripts_are_counted_by_letters_alone() -> None:
    assert script_mix("abc 你好 123 \ufffd\u200b!") == [("latin", 0.6), ("han", 0.4)]
    assert script_mix("ひらカナ") == [("kana", 1.0)]
    assert script_mix("ልጅ") == [("other", 1.0)]
    assert script_mix("123 \x00\ue000") == []


def test_a_difference_gives_both_texts_back() -> None:
    older, newer = "The answer is 5. 答案是五。", "The sum is\n\n55. 答案是六。"
    changes = compare(older, newer)
    assert "".join(c.text for c in changes if c.kind != "new") == older
    assert "".join(c.text for c in changes if c.kind != "gone") == newer
    assert ("gone", "五") in {(c.kind, c.text) for c in changes}
    assert not is_cut(older, newer)
    assert is_cut("x " * WORDS_MAX)


def test_an_address_says_the_whole_view_and_anything_odd_in_it_is_left_out() -> None:
    asked = {"step": "0", "text": "7", "against": "5", "show": "broken", "find": "a&b", "heat": "kl", "at": "1500"}
    view = View.read("r/1", asked)
    assert View.read("r/1", view.asked()) == view
    assert address("/ui/", view).startswith("/ui/run/r%2F1/texts?step=0&text=7")
    assert address("/ui/", view, text=8) == "/ui/run/r%2F1/texts?step=0&text=8&show=broken&find=a%26b&heat=kl"
    assert address("/ui/", View(run="r1", step=3), step=None) == "/ui/run/r1/texts"
    odd = {"step": "x", "text": "-3", "against": "1e9", "show": "<b>", "at": "9" * 40, "of": "run"}
    assert View.read("r1", odd) == View(run="r1", of="run")
