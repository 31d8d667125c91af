"""Every page of the dashboard with an address that shows it. A new page needs a line here."""

from __future__ import annotations

from collections.abc import Mapping

from rlvitals_dashboard.app import COMMAND, PAGES, RULE, RUN_PAGES, RUNBOOK

RUN = "run/"


def addresses(run: str, command: str, rule: str, other: str) -> dict[str, str]:
    """By the page's place; a place that has none is missing, for a test to find."""
    below = f"/ui/run/{run}"
    return {
        "": "/ui/",
        "incidents": "/ui/incidents",
        "compare": f"/ui/compare?runs={run},{other}",
        "control": f"/ui/control?run={run}",
        "control/policies": "/ui/control/policies",
        "control/silences": "/ui/control/silences",
        "control/audit": "/ui/control/audit",
        "channels": "/ui/channels",
        "rules": "/ui/rules",
        "rules/edit": "/ui/rules/edit",
        "import": "/ui/import",
        "settings": "/ui/settings",
        "settings/people": "/ui/settings/people",
        "settings/tokens": "/ui/settings/tokens",
        "settings/sessions": "/ui/settings/sessions",
        "settings/shares": "/ui/settings/shares",
        "settings/retention": "/ui/settings/retention",
        RULE: f"/ui/rules/rule/{rule}",
        RUNBOOK: f"/ui/runbook/{rule.partition('/')[0]}",
        COMMAND: f"/ui/control/command/{command}",
        RUN: below,
        f"{RUN}texts": f"{below}/texts",
        f"{RUN}incidents": f"{below}/incidents",
    }


def places() -> set[str]:
    """What the dashboard has."""
    return {*PAGES, *(f"{RUN}{part}" for part in RUN_PAGES), COMMAND, RULE, RUNBOOK}


def missing(known: Mapping[str, str]) -> set[str]:
    return places() ^ set(known)
