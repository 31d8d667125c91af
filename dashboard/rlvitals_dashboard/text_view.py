"""What a person looks at among the completions of a run, and its address. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import quote, urlencode

from rlvitals_dashboard.language import phrase

SHOWS = {
    "": phrase("All"),
    "broken": phrase("Broken bytes"),
    "cut": phrase("Cut by the limit"),
    "kept": phrase("Kept as a worst"),
}
LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What the person looks at; the URL says the same. Without ``step`` it follows the newest, at ``all`` steps it
    is the worst of the whole attempt; ``text`` and ``against`` are numbers of completions, 0 for none."""

    run: str
    attempt: str = ""
    step: int | None = None
    of: str = ""
    text: int = 0
    against: int = 0
    show: str = ""
    find: str = ""
    heat: str = ""
    at: int = 0

    @classmethod
    def read(cls, run: str, query: Mapping[str, str]) -> View:
        """Anything that cannot be meant is left out."""
        step = _whole(query.get("step"))
        return cls(
            run=run,
            attempt=query.get("attempt", "")[:64],
            step=step,
            of="run" if query.get("of") == "run" and step is None else "",
            text=max(_whole(query.get("text")) or 0, 0),
            against=max(_whole(query.get("against")) or 0, 0),
            show=query["show"] if query.get("show") in SHOWS else "",
            find=query.get("find", "")[:LONGEST_WORDS],
            heat=query.get("heat", "")[:32],
            at=max(_whole(query.get("at")) or 0, 0),
        )

    def asked(self) -> dict[str, str]:
        """The part of the address behind its question mark."""
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "run"}
        return {
            name: str(value) for name, value in told.items() if value is not None and (value or name == "step")
        }


def _whole(value: str | None) -> int | None:
    try:
        number = int(value or "")
    except ValueError:
        return None
    return number if abs(number) < 2**53 else None


def address(prefix: str, view: View, **changes: Any) -> str:
    """Of the page with some of its choices changed. Another completion is looked at from its first token on."""
    asked: dict[str, Any] = dict(view.asked())
    if changes.keys() & {"text", "step", "of"}:
        asked = {name: value for name, value in asked.items() if name not in ("at", "against")}
    told = {name: value for name, value in (asked | changes).items() if value not in ("", None)}
    return f"{prefix}run/{quote(view.run, safe='')}/texts" + (f"?{urlencode(told)}" if told else "")
