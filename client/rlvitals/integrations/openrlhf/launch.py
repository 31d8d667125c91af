"""Starts an OpenRLHF job under watch: ``python -m rlvitals.integrations.openrlhf.launch`` before its arguments.

Only the controllers' classes are patched, in this process. Ray is started, or joined, by OpenRLHF itself with
whatever address and runtime env it was given.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence

from rlvitals.integrations.openrlhf.entry import patch

USAGE = """usage: python -m rlvitals.integrations.openrlhf.launch (-m MODULE | SCRIPT) [ARGUMENT …]

Runs MODULE (openrlhf.cli.train_ppo_ray) or SCRIPT as Python itself would, with all that follows, and reports to
RL Vitals. Settings come from RLVITALS_* variables (rlvitals doctor shows them)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code 2 where the command line names nothing to run; else what runs decides."""
    told = list(sys.argv[1:] if argv is None else argv)
    if told[:1] == ["openrlhf"]:  # rlvitals launch openrlhf …
        told = told[1:]
    module = told[:1] == ["-m"]
    rest = told[1:] if module else told
    if not rest or rest[0].startswith("-"):
        sys.stderr.write(f"{USAGE}\n")
        return 2
    patch()
    sys.argv = rest
    if module:
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(rest[0].rpartition("/")[0] or "."))
        runpy.run_path(rest[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
