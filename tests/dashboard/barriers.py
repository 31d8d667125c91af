"""What axe-core finds on a page that keeps people out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe

GRAVE = ("serious", "critical")


def grave_barriers(page: Any, only: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """Each serious or critical violation with the beginnings of the elements that it is about; of the rules
    ``only``, where they are named."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if only:
        options["runOnly"] = {"type": "rule", "values": list(only)}
    found = Axe().run(page, options=options).response["violations"]
    return [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in GRAVE]
