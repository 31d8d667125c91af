"""Bad arguments: which, what was expected, what came; in every public function that measures."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from rlvitals.probes import arguments
from rlvitals.probes.arguments import (
    DeviceError,
    DtypeError,
    ProbeArgumentError,
    ShapeError,
    VocabularyError,
)

A, B = torch.zeros(2, 3), torch.zeros(2, 4)


def test_every_error_is_a_value_error_that_says_which_what_and_what_came() -> None:
    error = ShapeError("mask", "(2, 3) as logp has", "(2, 4)")
    assert str(error) == "mask: expected (2, 3) as logp has, got (2, 4)"
    assert isinstance(error, ProbeArgumentError)
    assert isinstance(error, ValueError)
    assert (error.argument, error.expected, error.got) == ("mask", "(2, 3) as logp has", "(2, 4)")


@pytest.mark.parametrize("kind", [ProbeArgumentError, ShapeError, DeviceError, DtypeError, VocabularyError])
def test_an_error_survives_the_way_between_processes(kind: type[ProbeArgumentError]) -> None:
    error = kind("ids", "integers", "torch.float32")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_wrong_types_are_type_errors_too() -> None:
    assert issubclass(DtypeError, TypeError)
    assert issubclass(VocabularyError, TypeError)


def test_the_checks_need_neither_numpy_nor_torch() -> None:
    code = (
        "import sys, rlvitals.probes.arguments\n"
        "assert not {'numpy', 'torch'} & set(sys.modules), 'the checks brought a library along'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_what_was_not_given_is_not_checked() -> None:
    arguments.check_tokens(logp=A, ref=None, mask=A)
    arguments.check_ids("ids", None)
    arguments.check_floating(logp=None)


def test_shapes_are_those_of_the_first() -> None:
    with pytest.raises(ShapeError, match=r"^mask: expected \(2, 3\) as logp has, got \(2, 4\)$"):
        arguments.check_tokens(logp=A, ref=None, mask=B)
    with pytest.raises(ShapeError, match=r"^logp: expected \(B, T\), got \(2,\)$"):
        arguments.check_tokens(logp=A[:, 0])


def test_devices_are_those_of_the_first() -> None:
    with pytest.raises(DeviceError, match=r"^mask: expected a tensor on cpu as logp is, got Tensor on meta$"):
        arguments.check_tokens(logp=A, mask=A.to("meta"))
    with pytest.raises(DeviceError, match=r"^mask: expected a tensor on cpu as logp is, got ndarray on cpu$"):
        arguments.check_tokens(logp=A, mask=A.numpy())


@pytest.mark.parametrize("value", [torch.zeros(()), A[:, 0], A[:1], A[:, :1], A[:1, :1], A], ids=str)
def test_weights_may_be_anything_that_broadcasts(value: torch.Tensor) -> None:
    arguments.check_broadcasts("weight", value, (2, 3))
    arguments.check_broadcasts("weight", value.numpy(), (2, 3))


@pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 2), (1, 2, 3)], ids=str)
def test_weights_that_do_not_broadcast_are_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"^weight: expected \(2,\) or what broadcasts to \(2, 3\), got"):
        arguments.check_broadcasts("weight", torch.zeros(shape), (2, 3))


def test_advantages_belong_to_rows_or_tokens() -> None:
    for good in (A[:, 0], A[:, :1], A):
        arguments.check_per_row("advantages", good, (2, 3))
    with pytest.raises(ShapeError, match=r"^advantages: expected \(2,\) or \(2, 3\), got \(1, 1\)$"):
        arguments.check_per_row("advantages", A[:1, :1], (2, 3))


def test_chosen_tokens_are_lengths_or_a_mask() -> None:
    for good in (A, A.bool(), torch.tensor([1, 3]), np.asarray([1, 3])):
        arguments.check_chosen("chosen", good, (2, 3))
    with pytest.raises(ShapeError, match=r"^chosen: expected lengths \(2,\) or a mask \(2, 3\), got \(3,\)$"):
        arguments.check_chosen("chosen", torch.tensor([1, 2, 3]), (2, 3))
    with pytest.raises(DtypeError, match=r"^chosen: expected integers, got torch.float32$"):
        arguments.check_chosen("chosen", torch.ones(2), (2, 3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64], ids=str)
def test_ids_are_integers(dtype: torch.dtype) -> None:
    with pytest.raises(DtypeError, match=rf"^ids: expected integers, got {dtype}$"):
        arguments.check_ids("ids", A.to(dtype))


@pytest.mark.parametrize("dtype", ["float32", "bool", "object"])
def test_ids_in_arrays_are_integers(dtype: str) -> None:
    with pytest.raises(DtypeError, match=rf"^ids: expected integers, got {dtype}$"):
        arguments.check_ids("ids", np.zeros((2, 3), dtype))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64], ids=str)
def test_integers_of_any_width_are_ids_and_no_log_probs(dtype: torch.dtype) -> None:
    arguments.check_ids("ids", A.to(dtype))
    arguments.check_ids("ids", A.to(dtype).numpy())
    with pytest.raises(DtypeError, match=rf"^logp: expected floating-point numbers, got {dtype}$"):
        arguments.check_floating(logp=A.to(dtype))


def test_numbers_have_a_floor_and_nan_is_below_it() -> None:
    arguments.check_at_least("group_size", 1, 1)
    for bad in (0, -3, float("nan"), np.int64(0)):
        with pytest.raises(ProbeArgumentError, match=rf"^group_size: expected 1 or more, got {bad}$"):
            arguments.check_at_least("group_size", bad, 1)
    with pytest.raises(DtypeError, match=r"^group_size: expected a number, got str$"):
        arguments.check_at_least("group_size", "4", 1)


def test_choices_are_listed() -> None:
    with pytest.raises(ProbeArgumentError, match=r"^estimator: expected one of k1, k2, got 'k9'$"):
        arguments.check_choice("estimator", "k9", ("k1", "k2"))
