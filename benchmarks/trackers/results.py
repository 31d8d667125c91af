"""What was measured, a file for each contender below ``.cache``; so a part can be measured again by itself."""

from __future__ import annotations

import json
import time
from typing import Any

from benchmarks.peers.environments import CACHE

FOLDER = CACHE.parent / "trackers"


def read(name: str) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    told: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return told


def keep(name: str, cell: str, told: dict[str, Any]) -> None:
    """In place of what the cell said before."""
    kept = read(name)
    kept[cell] = told | {"at": time.strftime("%Y-%m-%d %H:%M")}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(kept, indent=1))
