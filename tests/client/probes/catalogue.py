"""Every probe that takes tensors, by name, on one batch that has something for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from torch import Tensor

from rlvitals.contract.report import Extreme
from rlvitals.probes.advantages import measure_advantages
from rlvitals.probes.content import ContentTable
from rlvitals.probes.content_device import DeviceContent
from rlvitals.probes.entropy import measure_entropy
from rlvitals.probes.forced import measure_forced
from rlvitals.probes.gradients import measure_loss_tokens, measure_policy_pull
from rlvitals.probes.kl import measure_kl
from rlvitals.probes.logits import measure_logits
from rlvitals.probes.nonfinite import measure_nonfinite, measure_nonfinite_ratios
from rlvitals.probes.ratios import measure_ratios, measure_reference, measure_rollout
from rlvitals.probes.reduction import Reduction
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.tally import Tally
from rlvitals.probes.text_device import DeviceText
from rlvitals.probes.tokens import TokenTable
from rlvitals.probes.vocabulary import byte_alphabet

Batch = Mapping[str, Tensor]
TOKENS = ("logp", "ref", "old", "mask", "ids", "entropy", "chosen")
FLOATS = ("logp", "ref", "old", "entropy", "advantages", "weight", "logits")
IDS = 256 + 8


@dataclass(frozen=True)
class Probe:
    """``reads`` are the tensors of a `batch` that it is given."""

    reads: tuple[str, ...]
    measure: Callable[[Batch], Reduction]


def batch(rows: int = 6, width: int = 9, seed: int = 0) -> dict[str, Tensor]:
    """Single precision, with NaN and infinities under the mask and outside it, and a row without tokens."""
    draw = torch.Generator().manual_seed(seed)
    shape = rows, width
    logp = -3 * torch.rand(shape, generator=draw)
    ref, old = (logp + scale * torch.randn(shape, generator=draw) for scale in (0.8, 0.1))
    mask = torch.rand(shape, generator=draw) < 0.7
    if rows > 3 and width > 4:
        mask[0] = False
        logp[1, 1], logp[1, 2], ref[2, 3], old[3, 4], logp[3, 0] = math.nan, -math.inf, math.inf, math.nan, -14.0
        mask[1, 1], mask[1, 2], mask[2, 3], mask[3, 4], mask[3, 0] = True, False, True, True, True
    advantages = torch.randn(rows, generator=draw)
    return {
        "logp": logp,
        "ref": ref,
        "old": old,
        "mask": mask.long(),
        "ids": torch.randint(0, IDS + 2, shape, generator=draw),
        "advantages": advantages,
        "weight": torch.rand((rows, 1), generator=draw),
        "lengths": mask.sum(1),
        "entropy": -logp.clamp(-3.0, 0.0),
        "chosen": mask & (torch.rand(shape, generator=draw) < 0.9),
        "logits": torch.randn((*shape, 11), generator=draw).masked_fill(
            torch.rand((*shape, 11), generator=draw) < 0.05, math.inf
        ),
        "equal": advantages > 0.5,
    }


def _kl(estimator: str, **options: Any) -> Callable[[Batch], Reduction]:
    return lambda b: measure_kl(
        b["logp"], b["ref"], b["mask"], b["weight"], coef=0.04, estimator=estimator, ids=b["ids"], **options
    )


def _text(b: Batch, chosen: str) -> Reduction:
    device = str(b["ids"].device)
    if device not in _DEVICE_TEXTS:
        _DEVICE_TEXTS[device] = DeviceText(token_table(), device)
    return _DEVICE_TEXTS[device].measure(b["ids"], b[chosen], sample_offset=3)


def _content(b: Batch) -> Reduction:
    device = str(b["ids"].device)
    if device not in _DEVICE_CONTENTS:
        _DEVICE_CONTENTS[device] = DeviceContent(ContentTable.of(token_table()), device, stop_ids=(257,))
    table = _DEVICE_CONTENTS[device]
    return table.measure(b["ids"], b["mask"], sample=RowSample(share=0.5), group_size=2, sample_offset=2)


# no cache decorator: the compiler warns of one
_DEVICE_TEXTS: dict[str, DeviceText] = {}
_DEVICE_CONTENTS: dict[str, DeviceContent] = {}


_KL_READS = ("logp", "ref", "mask", "weight", "ids")
PROBES: dict[str, Probe] = {
    "kl k1": Probe(_KL_READS, _kl("k1")),
    "kl k3": Probe(_KL_READS, _kl("k3", vocabulary=IDS, sample_offset=3)),
    "kl low_var_kl": Probe(_KL_READS, _kl("low_var_kl")),
    "ratios": Probe(
        ("logp", "old", "mask", "advantages", "ids"),
        lambda b: measure_ratios(
            b["logp"], b["old"], b["mask"], b["advantages"], b["ids"], eps_low=0.1, eps_high=0.1
        ),
    ),
    "rollout": Probe(
        ("logp", "old", "mask", "ids"), lambda b: measure_rollout(b["logp"], b["old"], b["mask"], b["ids"])
    ),
    "reference": Probe(
        ("logp", "ref", "mask", "ids"), lambda b: measure_reference(b["logp"], b["ref"], b["mask"], b["ids"])
    ),
    "entropy": Probe(("entropy", "mask"), lambda b: measure_entropy(b["entropy"], b["mask"])),
    "forced": Probe(
        ("chosen", "mask", "ids"), lambda b: measure_forced(b["chosen"], b["mask"], b["ids"], sample_offset=3)
    ),
    "logits": Probe(("logits",), lambda b: measure_logits(b["logits"], positions=7, seed=3)),
    "logits under a mask": Probe(
        ("logits", "mask"), lambda b: measure_logits(b["logits"], b["mask"], positions=7, seed=3)
    ),
    "policy pull": Probe(
        ("logp", "old", "advantages", "mask", "weight"),
        lambda b: measure_policy_pull(
            b["logp"], b["old"], b["advantages"], b["mask"], b["weight"], clip=(0.1, 0.1)
        ),
    ),
    "policy pull without old": Probe(
        ("logp", "advantages", "mask", "weight"),
        lambda b: measure_policy_pull(b["logp"], None, b["advantages"], b["mask"], b["weight"]),
    ),
    "loss tokens": Probe(("mask",), lambda b: measure_loss_tokens(b["mask"])),
    "non-finite census": Probe(
        ("logp", "ref", "old", "mask", "ids"),
        lambda b: measure_nonfinite({n: b[n] for n in ("logp", "ref", "old")}, b["mask"], ids=b["ids"]),
    ),
    "non-finite census without mask": Probe(("logp",), lambda b: measure_nonfinite({"logp": b["logp"]}, None)),
    "non-finite ratios": Probe(
        ("logp", "old", "mask", "ids"),
        lambda b: measure_nonfinite_ratios(b["logp"], b["old"], b["mask"], ids=b["ids"]),
    ),
    "advantages": Probe(
        ("advantages", "equal"), lambda b: measure_advantages(b["advantages"], equal=b["equal"], sample_offset=3)
    ),
    "advantages by token": Probe(("logp", "mask"), lambda b: measure_advantages(b["logp"], mask=b["mask"])),
    "text by mask": Probe(("ids", "mask"), lambda b: _text(b, "mask")),
    "text by lengths": Probe(("ids", "lengths"), lambda b: _text(b, "lengths")),
    "content": Probe(("ids", "mask"), lambda b: _content(b)),
}
NAMES = tuple(PROBES)


@cache
def token_table() -> TokenTable:
    """256 byte pieces, 4 special tokens and 4 rows of the embedding that no token has."""
    core = Tokenizer(BPE({letter: byte for byte, letter in sorted(byte_alphabet().items())}, []))
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<pad>", "<eos>", "<|im_start|>", "<|im_end|>"])
    return TokenTable.from_tokenizer(core, IDS)


def given(probe: Probe, tensors: Batch) -> dict[str, Tensor]:
    return {name: tensors[name] for name in probe.reads}


def assert_same(found: Tally, expected: Tally, *, rel: float = 1e-12, besides: Iterable[str] = ()) -> None:
    """Counts, places, ids and reasons are equal; sums and values agree to ``rel``."""
    assert found.counts == expected.counts
    assert found.missing == expected.missing
    assert found.sketches == expected.sketches
    assert found.sums.keys() == expected.sums.keys()
    for name, value in expected.sums.items():
        assert close(found.sums[name], value, rel), (name, found.sums[name], value)
    for kind in ("minima", "maxima", "firsts"):
        seen, wanted = getattr(found, kind), getattr(expected, kind)
        assert seen.keys() == wanted.keys()
        for name in wanted.keys() - set(besides):
            assert place(seen[name]) == place(wanted[name]), name
            assert close(seen[name].value, wanted[name].value, rel), name
    assert found.by_id.keys() == expected.by_id.keys()
    for name, sums in expected.by_id.items():
        assert found.by_id[name].ids.tolist() == sums.ids.tolist(), name
        assert all(map(lambda a, b: close(a, b, rel), found.by_id[name].amounts, sums.amounts)), name


def place(extreme: Extreme) -> tuple[Any, ...]:
    return extreme.sample, extreme.position, extreme.token_id, extreme.masked


def close(a: float, b: float, rel: float) -> bool:
    return math.isclose(a, b, rel_tol=rel, abs_tol=1e-300) or (math.isnan(a) and math.isnan(b))
