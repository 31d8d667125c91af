"""What of all runs a person looks at, as the address says it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rlvitals.contract.view import Light, RunState

LONGEST_WORDS = 128
LONGEST_FOLD = 4_000
_FREE = ("q", "project", "framework", "owner", "label")
ARCHIVED = ("no", "only", "any")
COLUMNS = (
    "light",
    "name",
    "project",
    "framework",
    "step",
    "rate",
    "kl_coef",
    "gpu_hours",
    "firing",
    "owner",
    "seen",
)
"""By which runs can be put in order."""
WORST_FIRST = "-light"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
    """``light`` and ``state`` are names behind each other with commas; ``fold`` are projects that are folded up.

    ``sort`` is a column, with a minus before it the greatest first.
    """

    q: str = ""
    light: str = ""
    state: str = ""
    project: str = ""
    framework: str = ""
    owner: str = ""
    label: str = ""
    archived: str = "no"
    sort: str = WORST_FIRST
    group: str = ""
    fold: str = ""

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> RunsView:
        """Of an address, half of which may be missing or wrong: what means nothing is left out."""
        words = {f.name: value for f in fields(cls) if isinstance(value := told.get(f.name), str)}
        short = {name: words[name][:LONGEST_WORDS] for name in _FREE if name in words}
        sort = words.get("sort", WORST_FIRST)
        return cls(
            **short,
            light=_known(words.get("light", ""), [light.value for light in Light]),
            state=_known(words.get("state", ""), [state.value for state in RunState]),
            archived=words["archived"] if words.get("archived") in ARCHIVED else "no",
            sort=sort if sort.removeprefix("-") in COLUMNS else WORST_FIRST,
            group="project" if words.get("group") == "project" else "",
            fold=words.get("fold", "")[:LONGEST_FOLD],
        )

    def said(self) -> dict[str, str]:
        """Only what is not as it is anyway: for the address."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def asked(self) -> dict[str, Any]:
        """For the API."""
        lists = {name: getattr(self, name).split(",") for name in ("light", "state") if getattr(self, name)}
        plain = {name: getattr(self, name) for name in (*_FREE, "archived", "sort")}
        return plain | lists

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves runs out that are not archived."""
        return (
            bool(self.light or self.state or any(getattr(self, name) for name in _FREE)) or self.archived == "only"
        )


def _known(told: str, names: list[str]) -> str:
    return ",".join(name for name in names if name in told.split(","))
