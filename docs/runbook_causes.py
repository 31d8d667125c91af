"""docs/runbook_causes.yaml: what others found behind an alert and what helped them, read strictly.

kl_explosion:
  - cause: the reference is another checkpoint than the policy
    seen: 4
    references: ["owner/repo#123"]
    helped: loading both from the same path
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlvitals_monitor.rules.document import Item, RuleFileError, read_document
from rlvitals_monitor.rules.expression import nearest

CAUSES = Path(__file__).parent / "runbook_causes.yaml"
MOST_SEEN = 100_000
MOST_CHARACTERS = 1_000
_REFERENCE = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})#([1-9]\d{0,6})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    repository: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.repository}#{self.number}"

    @property
    def address(self) -> str:
        """GitHub leads on from an issue's address to a pull request of that number."""
        return f"https://github.com/{self.repository}/issues/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """``seen`` counts the reports; ``helped`` is "" where none says what did."""

    cause: str
    seen: int
    references: tuple[Reference, ...]
    helped: str = ""


def load_causes(alerts: Collection[str]) -> Mapping[str, tuple[Cause, ...]]:
    """Of the shipped file. Raises `RuleFileError` with file and line."""
    return read_causes(CAUSES.read_text("utf-8"), CAUSES.name, alerts) if CAUSES.exists() else {}


def read_causes(text: str, file: str, alerts: Collection[str]) -> Mapping[str, tuple[Cause, ...]]:
    """By alert, the most frequent first. Raises `RuleFileError` with every alert's first problem and its line."""
    found: dict[str, tuple[Cause, ...]] = {}
    problems: list[str] = []
    for alert, item in read_document(text, file).items():
        try:
            if alert not in alerts:
                raise item.fail(f"expected the name of an alert, got {alert!r}{nearest(alert, alerts)}")
            found[alert] = tuple(sorted(map(_cause, item.sequence()), key=lambda cause: -cause.seen))
        except RuleFileError as error:
            problems += error.problems
    if problems:
        raise RuleFileError(problems)
    return found


def _cause(item: Item) -> Cause:
    entries = item.mapping(("cause", "seen", "references", "helped"), required=("cause", "seen", "references"))
    references = tuple(map(_reference, entries["references"].sequence()))
    if not references:
        raise entries["references"].fail("expected at least one reference such as owner/repo#123")
    if len(set(references)) < len(references):
        raise entries["references"].fail("expected each reference once")
    return Cause(
        cause=_sentence(entries["cause"], least=1),
        seen=entries["seen"].whole(1, MOST_SEEN),
        references=references,
        helped=_sentence(entries["helped"]) if "helped" in entries else "",
    )


def _sentence(item: Item, least: int = 0) -> str:
    """One line that no mark of ours and no character that is not seen can hide in."""
    text = item.text()
    if not least <= len(text) <= MOST_CHARACTERS:
        raise item.fail(f"expected {least} to {MOST_CHARACTERS} characters, got {len(text)}")
    if not text.isprintable():
        raise item.fail("expected characters that can be seen")
    return text


def _reference(item: Item) -> Reference:
    text = item.text()
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise item.fail(f"expected a reference such as owner/repo#123, got {text[:80]!r}")
    return Reference(repository=f"{match[1]}/{match[2]}", number=int(match[3]))
