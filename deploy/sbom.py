"""``python -m deploy.sbom FOLDER``: what the client and the service are made of, as CycloneDX JSON.

Of the environment's own bill only those packages are kept that each requires: the client none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from deploy.dependencies import OPTIONAL, PROJECT, SERVICE, required

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
BILLS = {"client": (), "server": SERVICE, "server-all-extras": (*SERVICE, *OPTIONAL)}
"""Its name → the extras."""
Bill = dict[str, Any]


def survey() -> Bill:
    """All that is installed beside the running Python, as cyclonedx-py finds it."""
    form = ["--output-reproducible", "--of", "JSON", "--sv", "1.6", "--no-validate"]
    options = ["--pyproject", str(PYPROJECT), *form]
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, sys.executable]
    found: Bill = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def keep(environment: Bill, names: Iterable[str]) -> Bill:
    """The environment's bill with these packages alone, and of each what it requires among them."""
    wanted = frozenset(names)
    parts = [one for one in environment["components"] if canonicalize_name(one["name"]) in wanted]
    main = {**environment["metadata"]["component"], "version": version(PROJECT)}
    kept = {main["bom-ref"], *(one["bom-ref"] for one in parts)}
    links = [
        {"ref": one["ref"], "dependsOn": sorted(kept.intersection(one.get("dependsOn", ())))}
        for one in environment["dependencies"]
        if one["ref"] in kept
    ]
    metadata = {**environment["metadata"], "component": main}
    return {**environment, "metadata": metadata, "components": parts, "dependencies": links}


def main(argv: Sequence[str] | None = None) -> int:
    told = list(sys.argv[1:] if argv is None else argv)
    if len(told) != 1:
        print("usage: python -m deploy.sbom FOLDER", file=sys.stderr)
        return 2
    folder = Path(told[0])
    folder.mkdir(parents=True, exist_ok=True)
    environment = survey()
    for name, extras in BILLS.items():
        bill = keep(environment, (one.name for one in required(extras)))
        file = folder / f"{PROJECT}-{name}.cdx.json"
        file.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n")
        print(f"{file}: {len(bill['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
