"""Probes that run on the host give one Tally for lists, arrays and tensors, and leave no trace."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rlvitals.probes.content import ContentTable, tally_content
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.groups import tally_advantages, tally_rewards, total_rewards
from rlvitals.probes.lengths import tally_lengths
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.tally import Tally
from rlvitals.probes.text import tally_text
from tests.client.probes.catalogue import assert_same, batch, token_table

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
Arguments = Mapping[str, Any]
TABLE = token_table()
CONTENT = ContentTable.of(TABLE)
PROBES: dict[str, tuple[tuple[str, ...], Callable[[Arguments], Tally]]] = {
    "text by mask": (("ids", "mask"), lambda a: tally_text(TABLE, a["ids"], a["mask"])[0]),
    "text by lengths": (("ids", "lengths"), lambda a: tally_text(TABLE, a["ids"], a["lengths"])[0]),
    "content": (("ids", "mask"), lambda a: tally_content(CONTENT, a["ids"], a["mask"], stop_ids=(257,))),
    "repetition": (("ids", "lengths"), lambda a: tally_repetition(a["ids"], a["lengths"], table=CONTENT)),
    "duplicates": (("ids", "mask"), lambda a: tally_duplicates(a["ids"], a["mask"], 2)),
    "lengths": (("lengths", "last"), lambda a: tally_lengths(a["lengths"], a["last"], {5, 7}, 6)),
    "rewards": (("advantages",), lambda a: tally_rewards(a["advantages"], 2)),
    "rewards by function": (("parts",), lambda a: tally_rewards(total_rewards(a["parts"]), 3)),
    "advantages": (("advantages", "equal"), lambda a: tally_advantages(a["advantages"], equal=a["equal"])),
    "advantages by token": (("logp", "mask"), lambda a: tally_advantages(a["logp"], mask=a["mask"])),
}
FORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "lists": lambda t: t.tolist(),
    "arrays": lambda t: t.numpy(),
    "arrays in Fortran's order": lambda t: np.asfortranarray(t.numpy()),
    "strided tensors": lambda t: t.t().contiguous().t() if t.dim() == 2 else t,
    "tensors with a graph": lambda t: t.clone().requires_grad_() * 1 if t.is_floating_point() else t,
    "tensors in double precision": lambda t: t.double() if t.is_floating_point() else t,
    "integers of 32 bits": lambda t: t.int() if t.dtype == torch.int64 else t,
}


def tensors() -> dict[str, torch.Tensor]:
    parts = torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan], [0.5, torch.inf]]).repeat(2, 1)
    return batch() | {"last": torch.tensor([5, 6, 7, 5, 1, 2]), "parts": parts}


@pytest.mark.parametrize("name", PROBES)
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_the_input_changes_nothing(name: str, form: str) -> None:
    reads, probe = PROBES[name]
    given = {key: value for key, value in tensors().items() if key in reads}
    assert_same(probe({key: FORMS[form](value) for key, value in given.items()}), probe(given), rel=0)


@pytest.mark.parametrize("name", ["text by mask", "content", "repetition", "duplicates"])
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_ragged_ids_count_as_their_padding_beyond_each_length(name: str, layout: torch.layout) -> None:
    reads, probe = PROBES[name]
    sizes = torch.tensor([9, 1, 4, 5, 2, 9])
    inside = torch.arange(9) < sizes.unsqueeze(1)
    padded = {key: tensors()[key].masked_fill(~inside, 0) for key in ("ids", "mask")} | {"lengths": sizes}
    ragged = {
        key: torch.nested.nested_tensor(
            [row[:size].clone() for row, size in zip(value, sizes.tolist(), strict=True)], layout=layout
        )
        if value.dim() == 2
        else value
        for key, value in padded.items()
    }
    assert_same(probe({key: ragged[key] for key in reads}), probe(padded), rel=0)


@pytest.mark.parametrize("name", PROBES)
def test_nothing_is_kept_drawn_or_written(name: str) -> None:
    reads, probe = PROBES[name]
    given = {key: tensors()[key] for key in reads}
    before = torch.get_rng_state(), repr(np.random.get_state()), random.getstate()
    tally = probe(given)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (repr(np.random.get_state()), random.getstate()) == before[1:]
    assert all(torch.equal(value.nan_to_num(7.5), tensors()[key].nan_to_num(7.5)) for key, value in given.items())
    alive = [weakref.ref(value) for value in given.values()]
    del given
    assert not any(reference() is not None for reference in alive)
    assert_same(tally, probe({key: tensors()[key] for key in reads}), rel=0)


@pytest.mark.parametrize("name", PROBES)
def test_inside_a_compiled_function_numpy_is_not_traced(name: str) -> None:
    reads, probe = PROBES[name]
    given = {key: tensors()[key] for key in reads}
    torch._dynamo.reset()
    compiled = torch.compile(lambda values: (next(iter(values.values())) * 1, probe(values)), backend="eager")
    assert_same(compiled(given)[1], probe(given), rel=0)
