"""A hand-written GRPO loop with `rlvitals.run`: what it says, and that training never notices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rlvitals
from rlvitals import guard
from rlvitals.contract.metrics import METRICS, Family
from rlvitals.contract.report import Event, EventKind, Phase, StepReport, Text
from rlvitals.integrations.loop import Vitals, facts, measure, rollouts, session
from rlvitals.probes.tally import Tally
from tests.client.integrations import grpo, tiny

REGISTERED = {metric.name for metric in METRICS if metric.family is not Family.SELF}


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def plain() -> str:
    """The weights of a training that we never saw."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    loop = grpo.Loop()
    loop.train()
    torch.set_num_threads(threads)
    return loop.weights()


def watched(loop: grpo.Loop, **told: Any) -> list[StepReport]:
    with rlvitals.run(project="p", **{**loop.facts(), **told}) as vitals:
        loop.train(vitals)
    return tiny.steps(vitals.reporter)


def one_step(**arguments: Any) -> Vitals:
    return rlvitals.run(project="p", **arguments)


def last(vitals: Vitals, **scalars: Any) -> StepReport:
    vitals.step(1, **scalars)
    step = tiny.steps(vitals.reporter)[-1]
    vitals.close()
    return step


def test_training_is_the_same_bit_for_bit_and_draws_the_same_random_numbers(plain: str) -> None:
    loop = grpo.Loop()
    steps = watched(loop)
    assert loop.weights() == plain
    assert [step.step for step in steps] == [1, 2, 3]
    assert steps[-1].values["rlvitals.errors"] == guard.errors


def test_every_metric_of_the_registry_is_given_or_missing_with_a_reason() -> None:
    for step in watched(grpo.Loop()):
        assert step.values.keys() | step.missing.keys() >= REGISTERED
        assert not step.values.keys() & step.missing.keys()
        assert all(step.missing.values())
    given = {
        "kl.k3",
        "kl.pull_ratio",
        "ratio.max",
        "ratio.clip_low_share",
        "length.truncation_rate",
        "reward.mean",
    }
    given |= {"gradient.norm", "gradient.update_ratio", "policy.loss", "policy.loss_tokens", "text.duplicate_rate"}
    given |= {"policy.learning_rate", "kl.coef", "progress.step_time", "reward.zero_std_groups"}
    assert given <= step.values.keys()
    assert "tokenizer" in step.missing["text.invalid_utf8_count"]


def test_what_is_said_is_what_the_loop_computed() -> None:
    """Sums over both micro-batches, not means of means."""
    seen: list[dict[str, Any]] = []

    def keep(given: dict[str, Any]) -> dict[str, Any]:
        seen.append({name: value.detach().double() for name, value in given.items()})
        return given

    steps = watched(grpo.Loop(told=keep, steps=1))
    mask = torch.cat([part["mask"] for part in seen]) != 0
    distance = torch.cat([part["ref"] - part["logp"] for part in seen])[mask]
    values = steps[0].values
    assert values["kl.k3"] == pytest.approx((distance.exp() - 1 - distance).mean().item(), abs=1e-9)
    assert values["policy.loss_tokens"] == mask.sum().item()
    assert values["kl.coef"] == 0.05
    assert values["reward.group_size"] == grpo.GROUP


WRONG = {
    "too narrow": lambda given: given | {"ref": given["ref"][:, 1:]},
    "no numbers": lambda given: given | {"ref": "reference"},
    "integers": lambda given: given | {"old": given["ids"]},
    "a mask of another batch": lambda given: given | {"mask": given["mask"][:1]},
    "ids that are floats": lambda given: given | {"ids": given["ids"].float()},
    "advantages of another batch": lambda given: given | {"advantages": given["advantages"][:1]},
    "nothing": lambda given: {},
    "log-probs of one dimension": lambda given: given | {"logp": given["logp"].reshape(-1)},
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_no_probe_can_measure_never_reaches_the_loop(
    plain: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    before = guard.errors
    loop = grpo.Loop(told=WRONG[kind])
    steps = watched(loop)
    assert loop.weights() == plain
    assert len(steps) == 3
    assert (guard.errors > before) == (kind != "nothing")
    # what can be measured still is
    assert {"length.mean", "reward.mean", "gradient.norm", "policy.loss"} <= steps[-1].values.keys()
    assert steps[-1].values.keys() | steps[-1].missing.keys() >= REGISTERED


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (session.Session, "rollout"),
        (session.Session, "loss"),
        (session.Session, "gradient"),
        (session.Session, "step_ends"),
        (session.Session, "__init__"),
        (session.Session, "_finish"),
        (facts.Facts, "config"),
        (rollouts.Rollout, "of"),
        (measure, "pieces"),
        (session, "numbered"),
    ],
)
def test_whatever_of_ours_fails_the_training_goes_on_unchanged(
    plain: str, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    before = guard.errors

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(where, name, broken)
    loop = grpo.Loop()
    watched(loop)
    assert loop.weights() == plain
    assert guard.errors > before


def test_unknown_arguments_and_calls_with_the_wrong_things_are_told_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    with rlvitals.run(project="p", grup_size=4, reward_range=(1, 0), tokenizer=object()) as vitals:
        vitals.rollout(None)
        vitals.rollout([[1, 2], [3]], rewards=[1.0])
        vitals.loss(logp="x", rows=[1])
        vitals.gradient("steep")
        vitals.on("pause", print)
        vitals.on("nonsense", print)
        with vitals.phase("nonsense"):
            pass
        vitals.step("first")  # type: ignore[arg-type]
        vitals.step(1)
    assert [step.step for step in tiny.steps(vitals.reporter)] == [1]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinities_are_told_as_they_are(value: float) -> None:
    vitals = one_step(kl_coef=0.1, loss_type="grpo", group_size=2)
    logp = torch.tensor([[-1.0, value], [-1.0, -2.0]])
    vitals.rollout([[1, 2], [1, 3]], rewards=[value, 1.0])
    vitals.loss(torch.tensor(value), logp=logp, ref=-torch.ones(2, 2), advantages=torch.tensor([value, 0.5]))
    vitals.gradient(torch.tensor(value))
    values = last(vitals, mine=value).values
    for name in ("policy.loss", "gradient.norm", "mine"):
        assert values[name] == pytest.approx(value, nan_ok=True), name
    counted = ("loss", "gradient", "policy", "rewards", "advantages")
    assert [values[f"numerics.nonfinite_{what}"] for what in counted] == [1.0] * len(counted)
    assert values["kl.k3"] >= 0, "the finite tokens"
    assert values["reward.mean"] == 1.0


def test_what_nobody_told_is_missing_and_never_a_constant() -> None:
    vitals = one_step()
    vitals.rollout([[1, 2, 3], [1, 2]], rewards=[1.0, 0.0])
    logp = torch.full((2, 3), -1.0)
    vitals.loss(torch.tensor(0.5), logp=logp, old=logp - 0.1, ref=logp - 0.2)
    step = last(vitals)
    for name in facts.WEIGHTED:
        assert step.missing[name] == facts.NO_COEFFICIENT
    for name in facts.GROUPED:
        assert name in step.missing
    assert step.missing["reward.zero_std_groups"] == facts.NO_GROUPING
    assert step.missing["ratio.clip_low_share"] == measure.NO_ADVANTAGES
    assert step.missing["length.truncation_rate"]
    assert step.values["ratio.max"] == pytest.approx(math.exp(0.1), rel=1e-6)
    assert step.values["ratio.reference_max"] == pytest.approx(math.exp(0.2), rel=1e-6)


def test_weights_of_the_loops_own_stand_for_a_loss_type() -> None:
    vitals = one_step(kl_coef=2.0)
    logp, ref = torch.zeros(1, 2), torch.tensor([[0.0, math.log(2)]])
    vitals.loss(logp=logp, ref=ref, advantages=torch.ones(1), weights=torch.full((1, 2), 0.25))
    values = last(vitals).values
    assert values["kl.grad_norm"] == pytest.approx(2.0 * 0.25 * 1.0)
    assert values["kl.pull_ratio"] == pytest.approx(0.5 / (0.25 * math.sqrt(2)))


def test_completions_may_come_as_lists_padded_or_masked_with_groups_by_id() -> None:
    padded = torch.tensor([[5, 6, 0, 9], [5, 6, 7, 8], [4, 0, 9, 9], [4, 3, 2, 0]])
    for ids, chosen in (
        ([[5, 6, 0], [5, 6, 7, 8], [4, 0], [4, 3, 2, 0]], None),
        (padded, None),
        (padded, torch.tensor([3, 4, 2, 4])),
        (padded.numpy(), [[1, 1, 1, 0], [1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1]]),
    ):
        vitals = one_step(stop_ids=[0], length_cap=4)
        vitals.rollout(ids, chosen, rewards=[1.0, 1.0, 0.0, 1.0], group_ids=["a", "a", "b", "b"])
        values = last(vitals).values
        assert values["length.mean"] == 13 / 4
        assert values["length.truncation_rate"] == 0.25
        assert values["length.stop_rate"] == 0.75
        assert values["reward.zero_std_groups"] == 0.5
        assert values["text.duplicate_rate"] == 0.0


def test_a_tools_tokens_count_against_the_limit_but_are_not_the_policys() -> None:
    vitals = one_step(stop_ids=[0], length_cap=4)
    vitals.rollout([[5, 6, 7, 8], [5, 0, 9, 9]], torch.tensor([[1, 0, 0, 1], [1, 1, 0, 0]]))
    values = last(vitals).values
    assert values["length.mean"] == 2.0
    assert values["length.at_cap_share"] == 0.5
    assert values["length.truncation_rate"] == 0.5


def test_the_engines_own_word_and_several_reward_functions() -> None:
    vitals = one_step(stop_ids=[0], length_cap=2, group_size=2, reward_weights=[1.0, 2.0])
    rewards = {"right": [1.0, 0.0], "polite": [0.5, 0.5]}
    vitals.rollout([[5, 6], [5, 6]], rewards=rewards, finish_reasons=["stop", "length"], texts=["a", "b"])
    step = last(vitals)
    assert step.values["length.truncation_rate"] == 0.5
    assert step.values["reward.mean"] == 1.5
    assert step.values["reward.components_constant"] == 1.0
    assert step.values["text.duplicate_rate"] == 0.5
    texts = [record for record in tiny.records(vitals.reporter) if isinstance(record, Text)]
    assert {text.completion for text in texts} == {"a", "b"}
    assert {text.truncated for text in texts} == {True, False}
    assert {text.reward for text in texts} == {2.0, 1.0}


def test_counts_only_where_texts_are_not_wanted() -> None:
    vitals = one_step(texts=False)
    vitals.rollout([[5, 6]], texts=["secret"], prompts=["secret"])
    last(vitals)
    assert not [record for record in tiny.records(vitals.reporter) if isinstance(record, Text)]


def test_the_loops_own_numbers_take_the_registrys_names_but_never_their_measured_values() -> None:
    vitals = one_step()
    vitals.gradient(3.0)
    values = last(vitals, lr=1e-3, epoch=2, grad_norm=1.0, accuracy=0.5).values
    assert (values["policy.learning_rate"], values["progress.epoch"]) == (1e-3, 2.0)
    assert values["gradient.norm"] == 3.0
    assert values["accuracy"] == 0.5


def test_entropy_forced_tokens_logits_and_gradients_by_parameter() -> None:
    model = torch.nn.Linear(2, 2)
    vitals = one_step(model=model)
    model(torch.ones(1, 2)).sum().backward()
    mask, ids = torch.ones(1, 3), torch.tensor([[3, 4, 5]])
    given: dict[str, Tensor] = {"chosen": torch.tensor([[1, 0, 1]]), "logits": torch.randn(1, 3, 7)}
    vitals.loss(entropy=torch.full((1, 3), 0.5), mask=mask, ids=ids, **given)
    vitals.gradients()
    step = last(vitals)
    assert step.values["policy.entropy"] == 0.5
    assert step.values["policy.forced_loss_tokens"] == 1.0
    assert step.extremes["policy.forced_loss_tokens"].token_id == 4
    assert step.values["numerics.logit_max"] == pytest.approx(given["logits"].max().item())
    assert step.values["gradient.nonfinite_parameters"] == 0.0
    assert step.values["gradient.norm"] > 0


def test_phases_are_timed_where_the_loop_tells_of_them() -> None:
    vitals = one_step()
    with vitals.phase("rollout"):
        assert vitals.reporter.current_phase is Phase.ROLLOUT
    step = last(vitals)
    assert step.values["progress.phase_rollout_s"] >= 0
    assert "progress.phase_eval_s" in step.missing


def test_an_error_of_the_loop_is_the_loops_and_the_run_has_failed() -> None:
    vitals = rlvitals.run(project="p")

    def loop() -> None:
        with vitals:
            vitals.step(1, loss=1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop()
    phases = [r for r in tiny.records(vitals.reporter) if isinstance(r, Event) and r.kind is EventKind.PHASE]
    assert phases[-1].payload["phase"] == "failed"
    vitals.step(2, loss=1.0)
    assert len(tiny.steps(vitals.reporter)) == 1


def test_without_torch_the_loops_own_numbers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rlvitals.integrations.loop.session", None)
    vitals = one_step()
    vitals.rollout([[1]])
    vitals.loss(1.0)
    step = last(vitals, mine=1.0)
    assert step.values["mine"] == 1.0
    assert "kl.k3" in step.missing


def test_a_token_is_told_by_its_completions_number_however_the_batch_was_shuffled() -> None:
    vitals = one_step(kl_coef=0.1, loss_type="grpo")
    vitals.rollout([[1, 2], [3, 4]])
    vitals.rollout([[5, 6], [7, 8]])
    ref = torch.tensor([[0.0, 0.0], [0.0, 3.0]])
    vitals.loss(logp=torch.zeros(2, 2), ref=ref, ids=torch.tensor([[7, 8], [5, 6]]), rows=torch.tensor([1, 0]))
    extreme = last(vitals).extremes["kl.k3_max"]
    assert (extreme.token_id, extreme.sample, extreme.position) == (6, 2, 1)


def test_a_tokenizer_tells_of_the_text_and_ranges_override_it(policy: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(policy))
    e_acute = tokenizer("é", add_special_tokens=False)["input_ids"]
    a = tokenizer("a", add_special_tokens=False)["input_ids"]
    vitals = one_step(tokenizer=tokenizer, embedding_rows=300, token_ranges={"unassigned_ids": [(a[0], a[0])]})
    vitals.rollout([[*a, e_acute[0], *a], [*a, *a]], prompts=["p", "q"])
    step = last(vitals)
    assert step.values["text.invalid_utf8_count"] == 1.0
    assert step.values["text.never_trained_rate"] == pytest.approx(4 / 5)
    texts = [record for record in tiny.records(vitals.reporter) if isinstance(record, Text)]
    assert {text.invalid_utf8 for text in texts} == {0, 1}
    assert {text.prompt for text in texts} == {"p", "q"}
    (damaged,) = [text.tokens for text in texts if text.invalid_utf8]
    assert damaged is not None
    assert damaged.pieces == {str(a[0]): "61", str(e_acute[0]): "c3"}
    refused = last_of_unreadable(object())
    assert "not measured" in refused.missing["text.invalid_utf8_count"]


def last_of_unreadable(tokenizer: object) -> StepReport:
    vitals = one_step(tokenizer=tokenizer)
    vitals.rollout([[1]])
    return last(vitals)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_arrays_lists_and_low_precision_are_as_good_as_tensors(dtype: torch.dtype) -> None:
    logp = torch.tensor([[-1.0, -2.0], [-1.5, -0.5]], dtype=dtype)
    told: list[dict[str, float]] = []
    forms: tuple[Any, ...] = (lambda x: x, lambda x: x.float().numpy(), lambda x: x.float().tolist())
    for form in forms:
        vitals = one_step(kl_coef=0.1, loss_type="grpo", group_size=2)
        advantages = form(torch.tensor([1.0, -1.0]))
        vitals.loss(0.25, logp=form(logp), old=form(logp - 0.5), ref=form(logp + 1), advantages=advantages)
        told.append(dict(last(vitals).values))
    for name in (
        "kl.k3",
        "kl.pull_ratio",
        "ratio.max",
        "ratio.clip_high_share",
        "policy.loss",
        "policy.loss_tokens",
    ):
        assert told[0][name] == pytest.approx(told[1][name]) == pytest.approx(told[2][name])


class Broken:
    """Whatever is asked of it raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": Broken()},
        {"optimizer": Broken()},
        {"tokenizer": Broken()},
        {"config": Broken()},
        {"stop_ids": 5},
        {"kl_coef": lambda: 1 / 0},
        {"group_size": 0},
        {"kl_estimator": "k9"},
        {"loss_type": "mine"},
        {"epsilon": "wide"},
        {"accumulation": None},
        {"reward_weights": 5},
        {"spool": 5},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_no_argument_of_run_can_break_the_loop(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any]) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    with rlvitals.run(**{"project": "p", "kl_coef": 0.1, **wrong}) as vitals:
        vitals.rollout([[1, 2], [3]], rewards=[1.0, 2.0])
        zeros = torch.zeros(2, 2)
        vitals.loss(torch.tensor(1.0), logp=zeros, ref=zeros, old=zeros, advantages=torch.ones(2))
        vitals.gradients()
        vitals.gradient(torch.tensor(1.0))
        vitals.step(1)
    assert not vitals.should_stop


def test_what_another_process_measured_of_the_step_joins_the_loops_own() -> None:
    vitals = one_step()
    vitals.add(Tally(counts={"kl.tokens": 4}, sums={"kl.k1": 2.0, "kl.abs": math.inf}))
    told = last(vitals)
    assert told.values["kl.k1"] == 0.5
    assert told.values["kl.abs"] == math.inf


@pytest.mark.parametrize("mask", [True, False], ids=["a tool wrote some", "padded"])
def test_advantages_of_each_token_count_where_the_policy_chose_the_token(mask: bool) -> None:
    vitals = one_step(group_size=2)
    chosen: Any = torch.tensor([[1, 1, 0], [1, 0, 0]])
    advantages = torch.tensor([[1.0, -2.0, 0.0], [0.0, 0.0, 9.0]])
    vitals.rollout(
        torch.ones(2, 3, dtype=torch.int64), chosen if mask else torch.tensor([2, 1]), advantages=advantages
    )
    told = last(vitals)
    assert told.values["reward.advantage_abs_max"] == 2.0
    assert told.values["reward.advantage_zero_share"] == pytest.approx(1 / 3)


def test_an_evaluation_is_told_beside_the_steps_under_names_that_say_so() -> None:
    with one_step() as vitals:
        vitals.evaluation(0, {"reward": 0.25, "val/acc": torch.tensor(0.5), "worst": math.nan, "best": math.inf})
        vitals.step(1, loss=1.0)
    evaluated, trained = tiny.steps(vitals.reporter)
    assert (evaluated.step, trained.step, vitals.reporter.last_step) == (0, 1, 1)
    told = {name: value for name, value in evaluated.values.items() if not name.startswith("rlvitals.")}
    assert set(told) == {"eval/reward", "val/acc", "eval/worst", "eval/best"}
    assert (told["eval/reward"], told["val/acc"], told["eval/best"]) == (0.25, 0.5, math.inf)
    assert math.isnan(told["eval/worst"])


def test_the_completion_with_the_largest_ratio_is_kept_when_its_step_is_over() -> None:
    ids = torch.arange(64 * 4).reshape(64, 4) % 50
    logp = torch.zeros(64, 4)
    logp[37, 2] = 3.0
    with one_step(group_size=8) as vitals:
        vitals.rollout(ids, torch.full((64,), 4), rewards=torch.arange(64.0))
        vitals.loss(logp=logp, old=torch.zeros(64, 4), advantages=torch.ones(64), ids=ids)
        vitals.step(1)
        logp[37, 2], logp[11, 0] = 0.0, 9.0
        vitals.loss(logp=logp, old=torch.zeros(64, 4), advantages=torch.ones(64), ids=ids)
        vitals.step(2)
    texts = [record for record in tiny.records(vitals.reporter) if isinstance(record, Text)]
    worst = [text for text in texts if text.why == "worst_ratio"]
    assert [(text.step, text.sample) for text in worst] == [(1, 37), (2, 11)]
    assert worst[0].token_ids == tuple(ids[37].tolist())
    assert worst[0].reward == 37.0


def test_kept_completions_carry_what_the_loss_said_of_each_token() -> None:
    nan, inf = math.nan, math.inf
    logp = torch.tensor([[-1.0, nan, -2.0], [-0.1, -0.2, -0.3]])
    with one_step(kl_coef=0.1) as vitals:
        vitals.rollout([[1, 2, 3], [4, 5]], rewards=[0.0, 1.0])
        vitals.loss(logp=logp[:1], ref=torch.tensor([[-1.5, -0.5, -inf]]), advantages=torch.tensor([0.123456789]))
        vitals.loss(logp=logp[1:], rollout=logp[1:] - 0.5, advantages=torch.tensor([[1.0, inf, 0.0]]))
        vitals.loss(logp=logp[:1] + 9, rows=torch.tensor([0]))
        vitals.step(1)
    texts = {record.sample: record for record in tiny.records(vitals.reporter) if isinstance(record, Text)}
    first, second = (texts[n].tokens for n in (0, 1))
    assert first is not None
    assert second is not None
    assert [str(v) for v in first.scores["logp"]] == ["-1.0", "nan", "-2.0"]
    assert first.scores["ref_logp"] == (-1.5, -0.5, -inf)
    assert first.scores["advantage"] == (0.12346,) * 3
    assert "rollout_logp" not in first.scores
    assert second.scores == {"logp": (-0.1, -0.2), "rollout_logp": (-0.6, -0.7), "advantage": (1.0, inf)}


def test_no_completion_is_kept_for_its_ratio_where_texts_are_not_wanted() -> None:
    ids, logp = torch.zeros(8, 4, dtype=torch.long), torch.zeros(8, 4)
    logp[3, 1] = math.nan
    with one_step(group_size=8, texts=False) as vitals:
        vitals.rollout(ids, torch.full((8,), 4))
        vitals.loss(logp=logp, old=torch.zeros(8, 4), ids=ids)
        vitals.step(1)
    assert not [record for record in tiny.records(vitals.reporter) if isinstance(record, Text)]
