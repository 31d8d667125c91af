"""Runs each module of this folder that has a ``main() -> None``, or those that are named."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

LEFT_OUT = frozenset({"__main__", "sizes"})
"""Sizes are no speed: `make check` reports them."""
WHEN_NAMED = frozenset(
    {
        "collectors",
        "controllers",
        "live_page",
        "million_steps",
        "openrlhf_step",
        "partitions",
        "runs_page",
        "peers",
        "slime_step",
        "trackers",
        "verl_step",
    }
)
"""What takes minutes, or installs trainers or other monitors first."""


def main(chosen: Sequence[str]) -> int:
    """Returns 1 if a benchmark failed or a name is unknown."""
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]) if m.name not in LEFT_OUT)
    unknown = set(chosen) - set(names)
    if unknown:
        print(f"no benchmark called {', '.join(sorted(unknown))}; there are: {', '.join(names)}", file=sys.stderr)
        return 1
    failed = [name for name in chosen or sorted(set(names) - WHEN_NAMED) if not _run(name)]
    if failed:
        print(f"\n!! failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _run(name: str) -> bool:
    try:
        module = importlib.import_module(f"benchmarks.{name}")
        if not hasattr(module, "main"):
            return True
        print(f"\n== {name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        module.main()
    except Exception:  # noqa: BLE001 - one broken benchmark must not hide the others; it is told and fails the run
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
