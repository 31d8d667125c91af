"""What completions hold, counted where the ids are: the same as on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals.probes.arguments import DtypeError, ShapeError
from rlvitals.probes.content import tally_content
from rlvitals.probes.content_device import DeviceContent
from rlvitals.probes.duplicates import tally_duplicates
from rlvitals.probes.reduction import Pending
from rlvitals.probes.repetition import tally_repetition
from rlvitals.probes.row_sample import RowSample
from rlvitals.probes.tally import Tally
from tests.client.probes.written import byte_table, spelt

SPECIAL = 0


def on_host(ids: Any, chosen: Any, group_size: int, prompts: list[str] | None, **where: Any) -> Tally:
    table = byte_table()
    return (
        tally_content(table, ids, chosen, prompts=prompts, **where)
        + tally_repetition(ids, chosen, table=table, **where)
        + tally_duplicates(ids, chosen, group_size, sample_offset=where["sample_offset"])
    )


@settings(max_examples=30, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.sampled_from([0, 1, 2, 98, 98, 98, 99, 231, 189, 257, 299, 300, -4, 1 << 40]), max_size=10),
        min_size=1,
        max_size=6,
    ),
    width=st.integers(1, 10),
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    group_size=st.integers(1, 3),
)
def test_the_device_says_what_the_host_says(
    rows: list[list[int]], width: int, seed: int, share: float, group_size: int
) -> None:
    ids = np.asarray([(row + [98] * width)[:width] for row in rows], np.int64)
    chosen = np.random.default_rng(seed).random(ids.shape) < 0.8
    prompts = ["да"] * len(rows)
    sample = RowSample(share=share, seed=seed)
    expected = on_host(ids, chosen, group_size, prompts, sample=sample, sample_offset=7)
    found = DeviceContent(byte_table(), "cpu").measure(
        torch.tensor(ids),
        torch.tensor(chosen),
        sample=sample,
        group_size=group_size,
        prompts=prompts,
        sample_offset=7,
    )
    assert Pending([found]).tally() == expected


def test_stop_ids_and_lengths_are_those_of_the_host() -> None:
    ids, lengths = spelt("a\x00b", "😀\u200dxx", "aaaa")
    ids[0, 1] = ids[2, 2] = SPECIAL
    where: dict[str, Any] = {"sample": RowSample(), "sample_offset": 0}
    for stop_ids, share in (((), 2 / 3), ((SPECIAL,), 0.0)):
        device = DeviceContent(byte_table(), "cpu", stop_ids=stop_ids)
        found = device.measure(torch.tensor(ids, dtype=torch.int32), torch.tensor(lengths), **where).tally()
        assert found.measured().values["text.special_inside"] == share
        content = tally_content(byte_table(), ids, lengths, stop_ids=stop_ids, **where)
        assert content.maxima.items() <= found.maxima.items()


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (3, 0), (2, 4)])
def test_without_a_token_it_says_why_as_the_host_does(shape: tuple[int, int]) -> None:
    ids, lengths = np.ones(shape, np.int64), np.zeros(shape[0], np.int64)
    expected = on_host(ids, lengths, 2, None, sample=RowSample(), sample_offset=0)
    device = DeviceContent(byte_table(), "cpu")
    found = device.measure(torch.tensor(ids), torch.tensor(lengths), sample=RowSample(), group_size=2)
    assert found.tally() == expected


def test_bad_arguments_are_named() -> None:
    device, ids, chosen = DeviceContent(byte_table(), "cpu"), torch.ones((2, 3)).long(), torch.ones(2).long()
    with pytest.raises(DtypeError, match="ids"):
        device.measure(ids.double(), chosen, sample=RowSample())
    with pytest.raises(ShapeError, match="chosen"):
        device.measure(ids, chosen[:1], sample=RowSample())
    with pytest.raises(ShapeError, match="prompts"):
        device.measure(ids, chosen, sample=RowSample(), prompts=["a"])
