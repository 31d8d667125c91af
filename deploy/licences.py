"""``python -m deploy.licences``: every licence of what is required is one that we know, and none is a surprise."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from deploy.dependencies import OPTIONAL, SERVICE, Dependency, required

PERMISSIVE = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "BSD",
            "CC0-1.0",
            "HPND",
            "ISC",
            "MIT",
            "MIT-0",
            "MIT-CMU",
        ),
        *("PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
        *("Apache License 2.0", "Apache 2.0", "Apache Software License", "BSD License", "ISC License (ISCL)"),
        *("MIT License", "Python Software Foundation License", "The Unlicense (Unlicense)"),
    }
)
MPL = frozenset({"MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"})
LGPL = frozenset({"LGPL-3.0-only", "GNU Lesser General Public License v3 (LGPLv3)"})
KNOWN = {
    "certifi": (MPL, "a list of certificates, used as it is"),
    "orjson": (frozenset({"MPL-2.0 AND (Apache-2.0 OR MIT)"}), "used as it is"),
    "psycopg": (LGPL, "an extra, imported as it is and never changed, which the licence allows to any program"),
    "psycopg-binary": (LGPL, "as psycopg"),
}
"""Those that ask for more than a notice: their licence, and why it is none for who uses or ships the project."""


def faults(dependencies: Iterable[Dependency]) -> list[str]:
    """One line for each package whose licence is neither permissive nor known."""
    return [
        f"{one.name} {one.version}: {one.licence}"
        for one in dependencies
        if not is_permissive(one.licence) and not is_known(one)
    ]


def is_known(one: Dependency) -> bool:
    return one.name in KNOWN and one.licence in KNOWN[one.name][0]


def is_permissive(licence: str) -> bool:
    """Of an SPDX expression each part that is joined by AND needs one permissive choice."""
    if licence in PERMISSIVE:
        return True
    parts = re.split(r"\s+AND\s+", licence.replace("(", " ").replace(")", " "))
    return all(any(choice.strip() in PERMISSIVE for choice in re.split(r"\s+OR\s+", part)) for part in parts)


def main() -> int:
    """1 where a licence is a surprise."""
    found = required((*SERVICE, *OPTIONAL))
    wrong = faults(found)
    for line in wrong:
        print(f"!! a licence that nobody has looked at: {line}", file=sys.stderr)
    if not wrong:
        print(f"licences: {len(found)} packages, {sum(map(is_known, found))} not permissive and known")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
