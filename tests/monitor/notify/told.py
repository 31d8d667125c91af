"""Messages with all the parts that there are, for tests."""

from __future__ import annotations

import math
from dataclasses import replace

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.notification import (
    Act,
    Action,
    Diagnosis,
    Extras,
    Item,
    Notification,
    RunCount,
    Sample,
)
from rlvitals_monitor.notify.trend import Trend
from tests.monitor.planted import a_transition, an_alert, resolved

LINK = "https://vitals.example/ui/run/r1?attempt=t1"
TOKEN = "t0ken-_" * 6
WAVE = Trend(
    metric="kl.pull_ratio",
    steps=tuple(range(61, 121)),
    values=tuple({10: math.nan, 20: math.inf, 30: -math.inf, 40: None}.get(i, math.sin(i / 6)) for i in range(60)),
    threshold=1.0,
)


def a_group(words: str = "") -> Notification:
    """A cause, its symptom, another cause and a recovery of one run. ``words`` stand wherever a training process
    or an operator could put some."""
    run = RunInfo(id="r1", name=words or "tiny", project=words or "demo", framework="trl")

    def item(rule: str, id: str, **given: object) -> Item:
        alert = an_alert(id=id, rule=f"{rule}{words}", metric=words or "kl.k3", **given)
        return Item(transition=a_transition(alert, id=f"x{id}"), run=run, link=LINK)

    lead = item("kl_pull_dominates", "a1", summary=words or "It pulls.", advice=words or "Lower it.")
    over = item("over_rule", "a4")
    return Notification(
        id="msg_1",
        items=(
            lead,
            item("other_rule", "a3"),
            replace(item("symptom_rule", "a2", severity=Severity.CRITICAL), symptom_of="kl_pull_dominates"),
            replace(over, transition=resolved(over.transition)),
        ),
        run=run,
        link=LINK,
        extras=Extras(
            trend=replace(WAVE, metric=words or WAVE.metric),
            sample=Sample(step=120, completion=words or "1 + 1 = \udcff\udcfe3", reward=0.0),
            diagnosis=Diagnosis(
                headline=words or "The KL term and the policy's gradient are out of balance",
                confidence="medium",
                advice=words or "See the pull.",
                change=(("trl", words or "beta"),),
                isnt=words or "It is no drift.",
            ),
            actions=(
                *(Action(act=act, url=f"https://vitals.example/ui/act/{TOKEN}") for act in ASKED),
                *(Action(act=act, url=f"https://vitals.example/ui/act/{TOKEN}", about=SET) for act in DECIDED),
            ),
        ),
    )


ASKED, DECIDED = (Act.ACKNOWLEDGE, Act.SILENCE), (Act.APPROVE, Act.DENY)
SET = "set_kl_coef 0.05"


def a_digest(runs: int = 30, words: str = "") -> Notification:
    """Run i has i firing and one resolved change."""
    counts = tuple(
        RunCount(
            run=RunInfo(id=f"r{i}", name=words or f"run {i}"),
            firing=i,
            resolved=1,
            severity=Severity.CRITICAL if i == 7 else Severity.WARNING,
            rules=((words or "kl_drift", i), ("reward_drop", 1)),
            link=LINK,
        )
        for i in range(runs)
    )
    item = Item(transition=a_transition(), run=counts[0].run, link=LINK)
    return Notification(id="msg_9", items=(item,), run=None, counts=counts, link="https://vitals.example/ui/")
