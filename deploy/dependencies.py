"""What the project requires of others, as it is installed here: with what each of them requires in turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "rlvitals"
SERVICE = ("server", "postgres")
"""The extras that a service is installed with."""
OPTIONAL = ("apprise", "parquet", "query", "mcp")
"""Further ones that bring no trainer and no torch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One package. ``licence`` is its own word for it: an SPDX expression, or what its classifiers or text say."""

    name: str
    version: str
    licence: str


def required(extras: Iterable[str]) -> tuple[Dependency, ...]:
    """All that the project with these extras requires on this machine, by name.

    Raises `importlib.metadata.PackageNotFoundError` where one is not installed.
    """
    found: dict[str, Dependency] = {}
    seen: set[tuple[str, str]] = set()
    left = [(PROJECT, extra) for extra in ("", *extras)]
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        package = distribution(one[0])
        found[one[0]] = Dependency(name=one[0], version=package.version, licence=_licence(package))
        left += _requirements(package, one[1])
    del found[PROJECT]
    return tuple(found[name] for name in sorted(found))


def _requirements(package: Distribution, extra: str) -> Iterable[tuple[str, str]]:
    for line in package.requires or ():
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate({"extra": extra}):
            name = canonicalize_name(one.name)
            yield from ((name, wanted) for wanted in ("", *one.extras))


def _licence(package: Distribution) -> str:
    told = package.metadata
    spdx = told.get("License-Expression")
    if spdx:
        return str(spdx)
    kinds = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier", ()) if line.startswith("License ::")
    ]
    named = [kind for kind in kinds if kind != "OSI Approved"]
    return " AND ".join(named) or str(told.get("License") or "").strip().partition("\n")[0] or "not told"
