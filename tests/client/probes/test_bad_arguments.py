"""Each public probe names the argument that is wrong, by a typed error, before it launches anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.arguments import (
    DeviceError,
    DtypeError,
    ProbeArgumentError,
    ShapeError,
    VocabularyError,
)
from rlvitals.probes.components import tally_components
from rlvitals.probes.content import EVERY_ROW, ContentTable, tally_content
from rlvitals.probes.content_device import DeviceContent
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.entropy import measure_entropy, tally_entropy
from rlvitals.probes.forced import measure_forced, tally_forced
from rlvitals.probes.gradients import (
    measure_loss_tokens,
    measure_policy_pull,
    tally_loss_tokens,
    tally_policy_pull,
    weights_for,
)
from rlvitals.probes.groups import tally_advantages, tally_rewards, total_rewards
from rlvitals.probes.kl import measure_kl, tally_kl
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.logits import measure_logits
from rlvitals.probes.nonfinite import (
    measure_nonfinite,
    measure_nonfinite_ratios,
    tally_nonfinite,
    tally_nonfinite_ratios,
)
from rlvitals.probes.ratios import (
    measure_ratios,
    measure_reference,
    measure_rollout,
    tally_ratios,
    tally_reference,
    tally_rollout,
)
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.text import pack, tally_text
from rlvitals.probes.text_device import DeviceText
from rlvitals.probes.tokens import TokenTable
from tests.client.probes.catalogue import batch, token_table

GOOD = batch()
META = {name: value.to("meta") for name, value in GOOD.items()}
ARRAYS = {name: value.numpy() for name, value in GOOD.items()}
TEXT = DeviceText(token_table(), "cpu")
CONTENT = ContentTable.of(token_table())
WRITTEN = DeviceContent(CONTENT, "cpu")
KL = {"coef": 0.1}
CLIP = {"eps_low": 0.1, "eps_high": 0.1}


@dataclass(frozen=True)
class Probe:
    """``logprobs``, ``masks`` and ``numbers`` name arguments by what they hold; ``reads`` as in `batch`."""

    call: Callable[..., object]
    reads: dict[str, str]
    """argument → tensor of the batch"""
    options: dict[str, Any] = field(default_factory=dict)
    arrays: bool = False

    def __call__(self, **wrong: Any) -> object:
        source = ARRAYS if self.arrays else GOOD
        return self.call(**{name: source[key] for name, key in self.reads.items()} | self.options | wrong)

    def of(self, *kinds: str) -> list[str]:
        return [name for name, key in self.reads.items() if key in kinds]


def reading(*names: str, **renamed: str) -> dict[str, str]:
    return dict(zip(names, names, strict=True)) | renamed


_KL = reading("logp", "ref", "mask", "weight", "ids")
_RATIOS = reading("logp", "old", "mask", "advantages", "ids")
_ROLLOUT = {"logp": "logp", "rollout": "old", "mask": "mask", "ids": "ids"}
_REFERENCE = reading("logp", "ref", "mask", "ids")
_OVERFLOW = reading("logp", "old", "mask", "ids")
_CENSUS = reading("logp", "ref", "old", "mask", "ids")
_FORCED = reading("chosen", "mask", "ids")
_PULL = reading("logp", "old", "advantages", "mask", "weight")


def _census(**tensors: Any) -> object:
    logprobs = {name: tensors[name] for name in ("logp", "ref", "old")}
    return measure_nonfinite(logprobs, tensors["mask"], ids=tensors["ids"])


def _text(**arguments: Any) -> object:
    return tally_text(token_table(), **arguments)


def _content(**arguments: Any) -> object:
    return tally_content(CONTENT, **arguments)


PROBES = {
    "measure_kl": Probe(measure_kl, _KL, KL),
    "tally_kl": Probe(tally_kl, _KL, KL),
    "tally_kl of arrays": Probe(tally_kl, _KL, KL, arrays=True),
    "measure_ratios": Probe(measure_ratios, _RATIOS, CLIP),
    "tally_ratios": Probe(tally_ratios, _RATIOS, CLIP),
    "tally_ratios of arrays": Probe(tally_ratios, _RATIOS, CLIP, arrays=True),
    "measure_rollout": Probe(measure_rollout, _ROLLOUT),
    "tally_rollout": Probe(tally_rollout, _ROLLOUT),
    "tally_rollout of arrays": Probe(tally_rollout, _ROLLOUT, arrays=True),
    "measure_reference": Probe(measure_reference, _REFERENCE),
    "tally_reference": Probe(tally_reference, _REFERENCE),
    "tally_reference of arrays": Probe(tally_reference, _REFERENCE, arrays=True),
    "measure_policy_pull": Probe(measure_policy_pull, _PULL),
    "tally_policy_pull": Probe(tally_policy_pull, _PULL),
    "measure_nonfinite": Probe(_census, reading("logp", "ref", "old", "mask", "ids")),
    "tally_nonfinite": Probe(tally_nonfinite, reading("logp", "ref", "old", "mask", "ids")),
    "measure_nonfinite_ratios": Probe(measure_nonfinite_ratios, _OVERFLOW),
    "tally_nonfinite_ratios": Probe(tally_nonfinite_ratios, _OVERFLOW),
    "tally_nonfinite_ratios of arrays": Probe(tally_nonfinite_ratios, _OVERFLOW, arrays=True),
    "tally_nonfinite of arrays": Probe(tally_nonfinite, _CENSUS, arrays=True),
    "measure_entropy": Probe(measure_entropy, reading("entropy", "mask")),
    "tally_entropy": Probe(tally_entropy, reading("entropy", "mask")),
    "tally_entropy of arrays": Probe(tally_entropy, reading("entropy", "mask"), arrays=True),
    "measure_forced": Probe(measure_forced, _FORCED),
    "tally_forced": Probe(tally_forced, _FORCED),
    "tally_forced of arrays": Probe(tally_forced, _FORCED, arrays=True),
    "tally_policy_pull of arrays": Probe(tally_policy_pull, _PULL, arrays=True),
    "tally_loss_tokens of arrays": Probe(tally_loss_tokens, reading("mask"), arrays=True),
    "weights_for of arrays": Probe(weights_for, reading("mask"), {"loss_type": "grpo"}, arrays=True),
    "measure_loss_tokens": Probe(measure_loss_tokens, reading("mask")),
    "tally_loss_tokens": Probe(tally_loss_tokens, reading("mask")),
    "weights_for": Probe(weights_for, reading("mask"), {"loss_type": "grpo"}),
    "DeviceText.measure": Probe(TEXT.measure, reading("ids", chosen="mask")),
    "DeviceContent.measure": Probe(WRITTEN.measure, reading("ids", chosen="mask"), {"sample": EVERY_ROW}),
    "tally_text": Probe(_text, reading("ids", chosen="mask")),
    "tally_text of arrays": Probe(_text, reading("ids", chosen="lengths"), arrays=True),
    "tally_content": Probe(_content, reading("ids", chosen="mask")),
    "tally_repetition": Probe(tally_repetition, reading("ids", chosen="mask")),
    "tally_duplicates": Probe(tally_duplicates, reading("ids", chosen="lengths"), {"group_size": 2}),
}
TOKENS = ("logp", "ref", "old", "mask", "ids", "entropy", "chosen")


def cases(*kinds: str, beside: tuple[str, ...] = (), least: int = 1, first: bool = True) -> list[Any]:
    """(probe, argument) of each argument that holds one of ``kinds``.

    Only of probes that read ``least`` tensors or more, and without their first one if ``first`` is False.
    """
    return [
        pytest.param(probe, argument, id=f"{name}: {argument}")
        for name, probe in PROBES.items()
        for place, argument in enumerate(probe.of(*kinds))
        if name not in beside and len(probe.reads) >= least and (first or place)
    ]


@pytest.mark.parametrize("name", PROBES)
def test_good_arguments_pass(name: str) -> None:
    PROBES[name]()


@pytest.mark.parametrize(("probe", "argument"), cases(*TOKENS))
def test_what_is_not_rows_of_tokens_is_named(probe: Probe, argument: str) -> None:
    source = ARRAYS if probe.arrays else GOOD
    for wrong in (source[probe.reads[argument]][:, 0], source[probe.reads[argument]][None]):
        if argument == "chosen" and wrong.ndim == 1:
            continue
        with pytest.raises(ShapeError, match=rf"^{argument}: expected .*, got "):
            probe(**{argument: wrong})


@pytest.mark.parametrize(("probe", "argument"), cases(*TOKENS, least=3))
def test_tensors_of_another_shape_are_named(probe: Probe, argument: str) -> None:
    source = ARRAYS if probe.arrays else GOOD
    shaped = probe.of(*TOKENS)
    # the first sets the shape: there the second one is told, with whose shape it has not
    blamed = shaped[1] if argument == shaped[0] else argument
    with pytest.raises(ShapeError, match=rf"^{blamed}: expected .*\(6, .\).*, got \(6, .\)"):
        probe(**{argument: source[probe.reads[argument]][:, :4]})


@pytest.mark.parametrize(("probe", "argument"), cases("weight", "advantages", "lengths"))
def test_what_does_not_broadcast_is_named(probe: Probe, argument: str) -> None:
    source = ARRAYS if probe.arrays else GOOD
    with pytest.raises(ShapeError, match=rf"^{argument}: expected .*\(6, ?.*\), got \([45],"):
        probe(**{argument: source[probe.reads[argument]][:4]})


_HOST = ("tally_text", "tally_text of arrays", "tally_content", "tally_repetition", "tally_duplicates")


@pytest.mark.parametrize(("probe", "argument"), cases(*TOKENS, "weight", "advantages", beside=_HOST, first=False))
def test_tensors_on_another_device_are_named(probe: Probe, argument: str) -> None:
    first = next(iter(probe.reads))
    # among arrays it may be the one that is no tensor that is named
    expected = (
        r"\w+: expected an?" if probe.arrays else f"{argument}: expected a tensor on cpu as ({first}|table) is,"
    )
    with pytest.raises(DeviceError, match=f"^{expected} .*"):
        probe(**{argument: META[probe.reads[argument]]})


@pytest.mark.parametrize(("probe", "argument"), cases("ids"))
@pytest.mark.parametrize("dtype", ["float32", "bool"])
def test_ids_that_are_no_integers_are_named(probe: Probe, argument: str, dtype: str) -> None:
    ids = ARRAYS["ids"].astype(dtype) if probe.arrays else GOOD["ids"].to(getattr(torch, dtype))
    with pytest.raises(DtypeError, match=rf"^{argument}: expected integers, got (torch\.)?{dtype}$"):
        probe(**{argument: ids})


@pytest.mark.parametrize(("probe", "argument"), cases("logp", "ref", "old", "entropy"))
def test_log_probs_that_are_no_floats_are_named(probe: Probe, argument: str) -> None:
    wrong = ARRAYS["ids"] if probe.arrays else GOOD["ids"]
    with pytest.raises(DtypeError, match=rf"^{argument}: expected floating-point numbers, got (torch\.)?int64$"):
        probe(**{argument: wrong})


@pytest.mark.parametrize("name", [name for name in PROBES if "kl" in name])
def test_an_unknown_estimator_is_named(name: str) -> None:
    with pytest.raises(ProbeArgumentError, match=r"^estimator: expected one of k1, k2, k3, .*, got 'k9'$"):
        PROBES[name](estimator="k9")


@pytest.mark.parametrize("name", [name for name in PROBES if "_ratios" in name and "nonfinite" not in name])
@pytest.mark.parametrize("argument", ["eps_low", "eps_high"])
@pytest.mark.parametrize("value", [-0.1, float("nan")])
def test_a_clip_range_below_0_is_named(name: str, argument: str, value: float) -> None:
    with pytest.raises(ProbeArgumentError, match=rf"^{argument}: expected 0 or more, got {value}$"):
        PROBES[name](**{argument: value})


def test_an_unknown_loss_and_what_a_loss_needs_are_named() -> None:
    with pytest.raises(ProbeArgumentError, match=r"^loss_type: expected one of grpo, .*, got 'ppo'$"):
        weights_for("ppo", GOOD["mask"])
    with pytest.raises(ProbeArgumentError, match=r"^max_completion_length: expected a number"):
        weights_for("dr_grpo", GOOD["mask"])
    with pytest.raises(ProbeArgumentError, match=r"^num_items_in_batch: expected a number"):
        weights_for("dapo", GOOD["mask"])


@pytest.mark.parametrize("size", [0, -1, float("nan")])
def test_groups_smaller_than_1_are_named(size: Any) -> None:
    for call in (lambda: tally_rewards([1.0, 2.0], size), lambda: PROBES["tally_duplicates"](group_size=size)):
        with pytest.raises(ProbeArgumentError, match=rf"^group_size: expected 1 or more, got {size}$"):
            call()


def test_rewards_and_advantages_of_the_wrong_shape_are_named() -> None:
    wrong: dict[str, Callable[[], object]] = {
        "per_function": lambda: total_rewards([1.0, 2.0]),
        "weights": lambda: total_rewards([[1.0, 2.0]], [1.0, 2.0, 3.0]),
        "names": lambda: tally_components([[1.0, 2.0]], ["one"]),
        "advantages": lambda: tally_advantages(np.zeros((2, 3, 4))),
        "mask": lambda: tally_advantages(np.zeros((2, 3)), mask=np.ones((2, 4))),
        "equal": lambda: tally_advantages(np.zeros((2, 3)), equal=[True]),
    }
    for argument, call in wrong.items():
        with pytest.raises(ProbeArgumentError, match=rf"^{argument}: expected "):
            call()


def test_lengths_that_are_no_integers_or_do_not_match_are_named() -> None:
    with pytest.raises(DtypeError, match=r"^lengths: expected integers, got float64$"):
        tally_lengths([1.0, 2.0], [5, 5], {5}, 8)
    with pytest.raises(DtypeError, match=r"^last_ids: expected integers, got float64$"):
        tally_lengths([1, 2], [5.0, 5.0], {5}, 8)
    with pytest.raises(ShapeError, match=r"^lengths and last_ids: expected one last id per completion"):
        tally_lengths([1, 2], [5], {5}, 8)


def test_logits_of_the_wrong_kind_are_named() -> None:
    logits = GOOD["logits"]
    with pytest.raises(ShapeError, match=r"^logits: expected \(B, T, V\), got \(6, 9\)$"):
        measure_logits(logits[:, :, 0])
    with pytest.raises(DtypeError, match=r"^logits: expected floating-point numbers, got torch.int64$"):
        measure_logits(logits.long())
    with pytest.raises(ShapeError, match=r"^mask: expected \(6, 9\), got \(6, 8\)$"):
        measure_logits(logits, GOOD["mask"][:, :8])
    with pytest.raises(DeviceError, match=r"^mask: expected a tensor on cpu as logits is, got Tensor on meta$"):
        measure_logits(logits, META["mask"])
    with pytest.raises(ProbeArgumentError, match=r"^positions: expected 1 or more, got 0$"):
        measure_logits(logits, positions=0)


def test_advantages_of_another_size_than_their_groups_are_named() -> None:
    with pytest.raises(ShapeError, match=r"^equal: expected \(6,\), got \(5,\)$"):
        measure_advantages(GOOD["advantages"], equal=GOOD["equal"][:5])
    with pytest.raises(ShapeError, match=r"^advantages: expected \(B,\) or \(B, T\), got \(6, 9, 11\)$"):
        measure_advantages(GOOD["logits"])
    with pytest.raises(ShapeError, match=r"^mask: expected \(6, 9\) as advantages has, got \(6, 8\)$"):
        measure_advantages(GOOD["logp"], mask=GOOD["mask"][:, :8])
    with pytest.raises(
        DeviceError, match=r"^mask: expected a tensor on cpu as advantages is, got Tensor on meta$"
    ):
        measure_advantages(GOOD["logp"], mask=META["mask"])


@pytest.mark.parametrize("name", [name for name in PROBES if name.startswith("measure_")])
def test_an_array_among_tensors_is_named(name: str) -> None:
    last = list(PROBES[name].reads)[-1]
    with pytest.raises(DeviceError, match=rf"^{last}: expected a tensor, got ndarray$"):
        PROBES[name](**{last: ARRAYS[PROBES[name].reads[last]]})


def test_completions_of_floats_are_not_packed() -> None:
    with pytest.raises(DtypeError, match=r"^completions: expected integers, got float$"):
        pack([[1, 2], [3.0]])  # type: ignore[list-item]


class NoVocabulary:
    """A tokenizer in pure Python that shows nothing but its decoded text."""

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))


@pytest.mark.parametrize("tokenizer", [NoVocabulary(), None, "Qwen/Qwen2.5-0.5B"], ids=["object", "None", "name"])
def test_a_tokenizer_without_a_vocabulary_is_named(tokenizer: Any) -> None:
    with pytest.raises(VocabularyError, match=r"^tokenizer: expected "):
        TokenTable.from_tokenizer(tokenizer)
