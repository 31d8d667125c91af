"""Keeps probes out of compiled graphs: there they would look at numbers, and be compiled anew for each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncompiled(function: Callable[P, R]) -> Callable[P, R]:
    """Runs ``function`` as it is, with one break in the graph, where a compiled function calls it.

    As ``torch.compiler.disable``, but the compiler is not imported for it: that takes seconds.
    """
    made: list[Callable[P, R]] = []

    @wraps(function)
    def outside(*args: P.args, **kwargs: P.kwargs) -> R:
        if not made and "torch._dynamo" in sys.modules:
            import torch

            made.append(torch.compiler.disable(function))  # type: ignore[no-untyped-call]
        return (made[0] if made else function)(*args, **kwargs)

    return outside
