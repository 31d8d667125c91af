"""What a job is given so that our hooks can be switched within it, and what it noted of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
MODULE = "hook_switch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """``boundary`` is the function of the trainer whose return ends a step."""

    folder: Path
    turns: Sequence[bool]
    boundary: str

    @property
    def env(self) -> dict[str, str]:
        """Without the path on which `MODULE` is found, `HERE`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return {
            "SWITCH_FOLDER": str(self.folder),
            "SWITCH_TURNS": "".join(str(int(on)) for on in self.turns),
            "SWITCH_BOUNDARY": self.boundary,
        }

    def steps(self) -> list[tuple[bool, float, float]]:
        """Of each step: whether we took part, its seconds on the wall's clock and those of all its processes."""
        file = self.folder / "steps"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(turn == "1", float(wall), float(cpu)) for turn, wall, cpu in lines]
