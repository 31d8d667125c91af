"""``python -m deploy.audit``: whether a weakness is known in what the project requires, as it is installed here.

pip-audit asks a service that speaks OSV; OSV_URL names another one, such as a mirror within a network that has no
way out. Where none answers this says so in one line and goes on; with ``--strict`` it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deploy.dependencies import OPTIONAL, SERVICE, Dependency, required

OSV = "https://api.osv.dev/v1/query"
ANSWER_WITHIN_S = 10
PATIENCE_S = 300


class NoAnswer(Exception):
    """No service could be asked, and why."""


def weaknesses(dependencies: Iterable[Dependency], url: str) -> list[str]:
    """One line for each: package, version, the weakness' name and what repairs it. Raises `NoAnswer`."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("".join(f"{one.name}=={_public(one.version)}\n" for one in dependencies))
        options = ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--desc", "off"]
        asked = ["--vulnerability-service", "osv", "--osv-url", url, "--timeout", str(ANSWER_WITHIN_S)]
        command = [sys.executable, "-m", "pip_audit", "--requirement", str(pins), *options, *asked]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise NoAnswer(f"none within {PATIENCE_S} s") from error
    try:
        told: Any = json.loads(done.stdout)
    except ValueError:
        raise NoAnswer(done.stderr.strip().rpartition("\n")[2][:300]) from None
    return [
        f"{one['name']} {one['version']}: {found['id']}, repaired in {', '.join(found['fix_versions']) or 'none'}"
        for one in told["dependencies"]
        for found in one.get("vulns", ())
    ]


def _public(version: str) -> str:
    """Without what a builder adds of his own, which no service knows."""
    return version.partition("+")[0]


def main(argv: Sequence[str] | None = None) -> int:
    """1 where a weakness is known, or with ``--strict`` where nobody could be asked."""
    parser = argparse.ArgumentParser(prog="python -m deploy.audit", description="known weaknesses of dependencies")
    parser.add_argument("--strict", action="store_true", help="fail where no service answers")
    told = parser.parse_args(argv)
    found = required((*SERVICE, *OPTIONAL))
    try:
        lines = weaknesses(found, os.environ.get("OSV_URL", OSV))
    except NoAnswer as error:
        print(f"!! DEPENDENCY AUDIT SKIPPED, no vulnerability service answers: {error}", file=sys.stderr)
        return 1 if told.strict else 0
    for line in lines:
        print(f"!! a known weakness: {line}", file=sys.stderr)
    if not lines:
        print(f"audit: no known weakness in {len(found)} packages")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
