"""The parts of docs/runbooks/*.md that are generated, each between its marks; the rest is written by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import yaml

from docs.runbook_causes import Cause, load_causes
from docs.runbook_pictures import describe, draw
from docs.runbook_scenarios import Shown, shown
from rlvitals.contract.alert import Severity
from rlvitals_monitor.rules.loader import CATALOGUE, load_rules

RUNBOOKS = Path(__file__).parent / "runbooks"
LEARNED = "learned_band"
"""The page of all alerts that `rlvitals rules learn` wrote: they are of no shipped rule."""
END = "<!-- end -->"
NO_REPORT = "No public report of it is known to us yet."
ACKNOWLEDGE = """- **You look after it**: "I have seen it" on the run page, the link in a message or
  `POST /api/v1/alerts/ID/acknowledge` notes who does, for all to see. Reminders and escalation stop; the alert
  stays open until its condition ends, and its end is told."""
A_WHILE = """- **For a while**: `rlvitals silence add 'rule={pattern}' run=RUN --for 2h`, or for an hour the
  link in a message ([silences](../notify.md#silences-and-maintenance)). The alert stays on the run page; if it
  still fires at the silence's end, it is told then."""
ONE_CHANNEL = """- **In one channel**: `match: [rule!={pattern}]` in the
  [channels file](../notify.md#channels-where-alerts-go). The alert stays on the run page and goes to the other
  channels. All of `match` must hold: to silence it for one project, give that project a channel of its own
  (`match: [project=NAME, rule!={pattern}]`) and the other channel `project!=NAME`.{info}"""
EVERYWHERE = """- **Everywhere**: `off: [{alert}]` in a rule file that `RLVITALS_RULES` names; the service reads
  the file again when it changes. It takes the alert away with all its severities ({severities}).
- **With another threshold**: a rule of the same alert and severity in that file takes the shipped one's place.
  This is the shipped {severity} one, to change ([all of them](../rules.md)):"""


def pages() -> dict[str, str]:
    """Path under docs/ to text: every runbook and every picture. Raises `RuleFileError` for the causes' file."""
    names = sorted({rule.alert for rule in load_rules()} | {LEARNED})
    causes = load_causes(names)
    pictures = {f"runbooks/images/{alert}.svg": draw(one) for alert, one in shown().items()}
    return pictures | {f"runbooks/{name}.md": _page(name, causes.get(name, ())) for name in names}


def left_over() -> list[str]:
    """Pictures of alerts that are no more."""
    return [f"runbooks/images/{p.name}" for p in RUNBOOKS.glob("images/*.svg") if p.stem not in shown()]


def _page(name: str, causes: Sequence[Cause]) -> str:
    path = RUNBOOKS / f"{name}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else f"# {name}\n"
    if name in shown():
        text = put(text, "how it looks", looks(shown()[name]), before="## ")
    text = put(text, "usual causes", reported(causes), before="## What to change")
    return put(text, "how to silence", silence(name), before="")


def put(text: str, part: str, made: str, before: str) -> str:
    """``text`` with ``made`` between the part's marks; without marks yet, before the first line that begins so."""
    begin = f"<!-- generated: {part} -->"
    block = f"{begin}\n{made}\n{END}\n"
    if begin in text:
        head, _, rest = text.partition(begin)
        _, end, tail = rest.partition(f"{END}\n")
        if not end:
            raise ValueError(f"expected {END} after {begin}")
        return f"{head}{block}{tail}"
    line = re.search(rf"^{re.escape(before)}", text, re.MULTILINE) if before else None
    if line is None:
        return f"{text.rstrip()}\n\n{block}"
    return f"{text[: line.start()]}{block}\n{text[line.start() :]}"


def looks(one: Shown) -> str:
    words = describe(one).replace("[", "(").replace("]", ")")
    said = f"{one.name[0].upper()}{one.name[1:]}."
    if one.threshold is not None and one.threshold.origin.value:
        said += f" The threshold comes from {one.threshold.origin.value}."
    numbers = f"The numbers are those of [the scenario](../../tests/scenarios/{one.file}) that tests the rule."
    return f"## How it looks\n\n![{words}](images/{one.alert}.svg)\n\n{said} {numbers}"


def reported(causes: Sequence[Cause]) -> str:
    head = "## Usual causes, most frequent first\n\n"
    if not causes:
        return head + NO_REPORT
    rows = [f"{place}. {_inert(one.cause)} ({_seen(one)})" for place, one in enumerate(causes, start=1)]
    helped = [f"- For {place}: {_inert(one.helped)}" for place, one in enumerate(causes, start=1) if one.helped]
    more = ["", "## What helped others", "", *helped] if helped else []
    return head + "\n".join([*rows, *more])


def silence(name: str) -> str:
    severities = [rule.severity for rule in load_rules() if rule.alert == name]
    info = (
        "\n  Information is sent to channels with `severity: info` alone." if Severity.INFO in severities else ""
    )
    pattern = "band_*" if name == LEARNED else name
    ways = (A_WHILE.format(pattern=pattern), ONE_CHANNEL.format(pattern=pattern, info=info), ACKNOWLEDGE)
    return "\n".join(["## How to silence", "", *_everywhere(name, severities), *ways])


def _everywhere(name: str, severities: Sequence[Severity]) -> list[str]:
    """With the shipped rule that the picture shows firing first: the one that people meet first."""
    if name == LEARNED:
        return ["- **Everywhere**: delete the rule from the file that was learned."]
    severity = shown()[name].firings[0].severity if name in shown() else severities[0]
    levels = ", ".join(level.value for level in severities)
    said = EVERYWHERE.format(alert=name, severities=levels, severity=severity.value)
    rule = [f"  {line}" for line in own_rule(name, severity).splitlines()]
    return [said, "", "  ```yaml", *rule, "  ```", ""]


def own_rule(alert: str, severity: Severity) -> str:
    """A rule file with the shipped rule as its author wrote it, but for the reason of its number."""
    wanted = (alert, severity.value)
    entry = next(rule for rule in _catalogue() if (rule["alert"], rule["labels"]["severity"]) == wanted)
    kept = {key: value for key, value in entry["annotations"].items() if key != "reason"}
    document = {"groups": [{"name": "own", "rules": [{**entry, "annotations": kept}]}]}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Lists of plain values on one line, as rule files are written."""

    def represent_list(self, data: list[object]) -> yaml.Node:
        flow = not any(isinstance(entry, dict) for entry in data)
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


_Dumper.add_representer(list, _Dumper.represent_list)


@cache
def _catalogue() -> list[dict[str, dict[str, str]]]:
    files = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CATALOGUE.glob("*.yaml"))]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def _seen(one: Cause) -> str:
    links = ", ".join(f"[{reference.name}]({reference.address})" for reference in one.references)
    return f"seen {one.seen} time{'' if one.seen == 1 else 's'}: {links}"


def _inert(text: str) -> str:
    """Outside of code neither HTML nor a link: what is shown is what was written."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]<>])", r"\\\1", part) for part in parts)
