"""A probe in a compiled function runs as it is; in any other it is called at once."""

from __future__ import annotations

import inspect
import subprocess
import sys

import torch

from rlvitals.probes.uncompiled import uncompiled


@uncompiled
def largest(values: torch.Tensor, *, floor: float = 0.0) -> float:
    """Looks at a number, as a compiled graph cannot."""
    return max(floor, values.max().item())


def test_it_keeps_name_text_and_signature() -> None:
    assert largest.__name__ == "largest"
    assert largest.__doc__ == "Looks at a number, as a compiled graph cannot."
    assert list(inspect.signature(largest).parameters) == ["values", "floor"]


def test_each_number_is_looked_at_and_none_is_compiled_for() -> None:
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    step = torch.compile(lambda values: (values * 2, largest(values, floor=1.0)), backend="eager")
    for number in range(12):
        assert step(torch.full((3,), float(number)))[1] == max(1.0, number)
    assert counters["stats"]["unique_graphs"] == 1


def test_measuring_does_not_load_a_compiler() -> None:
    code = (
        "import sys, torch\n"
        "from rlvitals.probes.gradients import tally_loss_tokens\n"
        "assert tally_loss_tokens(torch.ones(2, 3)).counts['policy.loss_tokens'] == 6\n"
        "assert 'torch._dynamo' not in sys.modules, 'the compiler was loaded, which takes seconds'"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
