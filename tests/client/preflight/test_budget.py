"""L1 to L3: lengths against limits, with the key that sets the limit and the value that covers 95 %."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from rlvitals.preflight.budget import BudgetFacts, Limit, judge_budget, suggested_cap
from rlvitals.preflight.data import read_file
from rlvitals.preflight.data_lengths import EXACT_BELOW, SAMPLED, Histogram, LengthFacts, Lengths
from rlvitals.preflight.finding import Finding, Verdict
from rlvitals.preflight.inputs import Inputs, check_inputs

AROUND_400 = LengthFacts.of_tokens([int(Random(n).gauss(400, 80)) for n in range(500)])
SHORT = LengthFacts.of_tokens([40] * 100)


def limit(tokens: int, key: str = "max_completion_length") -> Limit:
    return Limit(tokens=tokens, key=key, where=f"grpo.yaml: {key}")


def found(facts: BudgetFacts) -> dict[str, Finding]:
    return {f.check: f for f in judge_budget(facts)}


def test_a_limit_of_256_for_answers_of_median_400_is_fatal_with_key_and_value() -> None:
    finding = found(BudgetFacts(answers=AROUND_400, completion=limit(256)))["L1"]
    assert finding.verdict is Verdict.FATAL
    assert "max_completion_length = 256 is below the median answer" in finding.subject
    assert finding.where == "grpo.yaml: max_completion_length"
    covered = suggested_cap(AROUND_400)
    assert f"set max_completion_length to {covered}" in finding.fix
    assert AROUND_400.share_above(covered) <= 0.05 < AROUND_400.share_above(covered - 64)


def test_a_grpo_config_and_a_file_of_answers_meet_by_themselves(tmp_path: Path) -> None:
    (tmp_path / "grpo.yaml").write_text("num_generations: 8\nmax_completion_length: 256\n")
    rows = [{"prompt": f"Q{n}", "completion": "word " * (400 + n % 7)} for n in range(60)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    inputs = Inputs(
        data=tmp_path / "train.jsonl",
        config=tmp_path / "grpo.yaml",
        count_tokens=lambda text: len(text.split()),
        versions={},
    )
    (finding,) = [f for f in check_inputs(inputs) if f.check == "L1"]
    assert finding.verdict is Verdict.FATAL
    assert "median answer (403 tokens)" in finding.subject
    assert "median 403, p95 406, max 406 tokens counted" in finding.evidence
    assert "to 448" in finding.fix
    assert finding.where.endswith("grpo.yaml: max_completion_length")


@pytest.mark.parametrize(
    ("tokens", "verdict"), [(350, Verdict.FATAL), (450, Verdict.WARN), (600, Verdict.OK), (4096, Verdict.OK)]
)
def test_the_verdict_follows_the_share_that_is_cut(tokens: int, verdict: Verdict) -> None:
    assert found(BudgetFacts(answers=AROUND_400, completion=limit(tokens)))["L1"].verdict is verdict


def test_five_in_a_hundred_may_be_cut_and_six_may_not() -> None:
    for cut, verdict in ((5, Verdict.OK), (6, Verdict.WARN)):
        lengths = LengthFacts.of_tokens([100] * (100 - cut) + [300] * cut)
        assert found(BudgetFacts(answers=lengths, completion=limit(256)))["L1"].verdict is verdict


def test_without_answers_or_with_labels_nothing_is_judged() -> None:
    labels = LengthFacts.of_tokens([2] * 50)
    for facts in (
        BudgetFacts(completion=limit(256)),
        BudgetFacts(answers=LengthFacts.of_tokens([]), completion=limit(256)),
        BudgetFacts(answers=labels, completion=limit(1), answer_key="answer", labels=True),
    ):
        assert found(facts)["L1"].verdict is Verdict.SKIPPED


def test_without_a_limit_one_is_suggested() -> None:
    finding = found(BudgetFacts(answers=AROUND_400))["L1"]
    assert finding.verdict is Verdict.INFO
    assert str(suggested_cap(AROUND_400)) in finding.fix


def test_few_texts_are_said_to_be_few() -> None:
    few = LengthFacts.of_tokens([10] * 4)
    assert "only 4 texts" in found(BudgetFacts(answers=few, completion=limit(64)))["L1"].evidence
    assert "only" not in found(BudgetFacts(answers=SHORT, completion=limit(64)))["L1"].evidence


def test_prompts_are_held_against_their_limit() -> None:
    long = LengthFacts.of_tokens([100] * 98 + [700] * 2)
    told = found(BudgetFacts(prompts=long, prompt=limit(512, "data.max_prompt_length")))["L2"]
    assert told.verdict is Verdict.WARN
    assert "data.max_prompt_length to 704" in told.fix
    rare = LengthFacts.of_tokens([100] * 199 + [700])
    assert found(BudgetFacts(prompts=rare, prompt=limit(512)))["L2"].verdict is Verdict.OK
    assert found(BudgetFacts(prompts=long))["L2"].verdict is Verdict.SKIPPED


def test_prompt_and_answer_share_the_context() -> None:
    def judged(completion: int, prompt: Limit | None = None) -> Finding:
        facts = BudgetFacts(prompts=SHORT, completion=limit(completion), prompt=prompt, context=limit(1024, "len"))
        return found(facts)["L3"]

    assert judged(984).verdict is Verdict.OK
    assert judged(985).verdict is Verdict.WARN
    assert judged(1024).verdict is Verdict.FATAL
    assert judged(1000, prompt=limit(16)).verdict is Verdict.OK
    assert found(BudgetFacts(completion=limit(8)))["L3"].verdict is Verdict.SKIPPED


def test_quantiles_are_exact_below_the_bound_and_close_above() -> None:
    histogram = Histogram()
    for value in range(1, 101):
        histogram.add(value)
    assert [histogram.quantile(q) for q in (0.0, 0.5, 0.95, 1.0)] == [1, 50, 95, 100]
    assert histogram.share_above(95) == 0.05
    far = Histogram()
    far.add(EXACT_BELOW * 100 + 1)
    assert 1 <= far.quantile(1.0) / (EXACT_BELOW * 100 + 1) <= 1 + 1 / 512
    assert Histogram().quantile(0.5) == 0
    assert Histogram().share_above(1) == 0.0


def test_a_histogram_of_anything_stays_small() -> None:
    histogram, random = Histogram(), Random(0)
    for _ in range(20_000):
        histogram.add(int(10 ** random.uniform(0, 9)))
    assert len(histogram.counts) < EXACT_BELOW + 512 * 20


def test_tokens_of_many_texts_follow_from_a_sample_and_of_few_are_counted() -> None:
    def words(text: str) -> int:
        return len(text.split())

    few = Lengths(words)
    for n in (1, 2, 3):
        few.add("word " * n)
    assert few.facts().tokens(0.5) == 2
    many = Lengths(words)
    for _ in range(SAMPLED * 3):
        many.add("four" + " four" * 99)
    facts = many.facts()
    assert facts.counted == SAMPLED
    assert facts.tokens(0.5) == pytest.approx(100, abs=1)
    estimated = Lengths()
    estimated.add("a" * 400)
    estimated.add("é" * 200 + "\ud800")
    assert estimated.facts().tokens(0.5) == 100
    assert estimated.facts().counted == 0


def test_answers_of_a_rollout_log_are_taken_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"input": "2+2?", "output": "' + "x" * 800 + '"}\n')
    reading = read_file(tmp_path / "a.jsonl")
    assert (reading.facts.prompt_key, reading.facts.answer_key) == ("input", "output")
    assert reading.answers.tokens(0.5) == 200
