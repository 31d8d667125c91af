"""What the chaos did: counts of what must not happen, from the journals, the ledgers and the database."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select, text

from rlvitals.contract.report import StepReport
from rlvitals.contract.report import Text as Completion
from rlvitals.follow import Follower
from rlvitals.spool import journals, read_acked
from rlvitals_monitor.alerts.replay import episodes, replay
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.series import every_step
from rlvitals_monitor.store.tables import attempts, steps, transitions, writers
from rlvitals_monitor.store.tables import texts as completions
from tests.chaos.cluster import TWIN, Cluster
from tests.chaos.members import Trainer
from tests.chaos.progress import read_ledger
from tests.chaos.trainer import LONGEST_CALL_S

_ROLLED_UP_TWICE = """
SELECT count(*) FROM (
  SELECT series, width, sum(count + nan + pos_inf + neg_inf) AS counted FROM rollups GROUP BY series, width
) r JOIN (SELECT series, count(*) AS stored FROM points GROUP BY series) p ON p.series = r.series
WHERE counted <> stored
"""


Told = tuple[str, str, str, int]
"""Rule, severity, state and step of one change."""


@dataclass(kw_only=True)
class Counts:
    """Must all be 0 that are in `MUST_BE_ZERO`; the others say how much was looked at.

    ``lost`` counts what is in a journal and not in the store, ``reports_lost`` steps whose `report` returned and
    which are nowhere, but for those that were only in memory since a disk was full. ``met``: how often each kind
    of fault struck.
    """

    acknowledged_lost: int = 0
    lost: int = 0
    reports_lost: int = 0
    duplicates: int = 0
    out_of_order: int = 0
    alerts_twice: int = 0
    alerts_wrong: int = 0
    commands_twice: int = 0
    hung: int = 0
    reports: int = 0
    alerts: int = 0
    commands: int = 0
    longest_call_s: float = 0.0
    met: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    MUST_BE_ZERO = (
        "acknowledged_lost",
        "lost",
        "reports_lost",
        "duplicates",
        "out_of_order",
        "alerts_twice",
        "alerts_wrong",
        "commands_twice",
        "hung",
    )

    @property
    def faults(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.MUST_BE_ZERO if getattr(self, name)}

    def show(self) -> str:
        told = [f"{name.replace('_', ' ')} {getattr(self, name)}" for name in self.MUST_BE_ZERO]
        seen = f"{self.reports} reports, {self.alerts} alerts, {self.commands} commands"
        return f"{', '.join(told)}; of {seen}; the longest calls of a step waited {self.longest_call_s:.2f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one journal holds, and how much of it was acknowledged."""

    run: str
    attempt: str
    acked: int
    steps: dict[int, int]
    texts: dict[int, int]

    @classmethod
    def read(cls, trainer: Trainer) -> Iterator[Written]:
        for folder in journals(trainer.spool):
            acked = read_acked(folder).stored_through
            steps_of: dict[int, int] = {}
            texts_of: dict[int, int] = {}
            follower = Follower(folder)
            while items := follower.read(2_000):
                for item in items:
                    if isinstance(item.record, StepReport):
                        steps_of[item.record.step] = item.seq
                    elif isinstance(item.record, Completion):
                        texts_of[item.record.step] = item.seq
            follower.close()
            yield cls(run=trainer.run, attempt=folder.name, acked=acked, steps=steps_of, texts=texts_of)


def acknowledged_lost(cluster: Cluster) -> int:
    """Writers of whom the service has less than it acknowledged; any time, also while they write."""
    told = {
        (trainer.run, folder.name): read_acked(folder).stored_through
        for trainer in cluster.trainers
        for folder in journals(trainer.spool)
    }
    with cluster.store.read() as connection:
        rows = connection.execute(
            select(attempts.c.run, attempts.c.id, writers.c.stored_through).join(
                writers, writers.c.attempt == attempts.c.number
            )
        ).all()
    known = {(row.run, row.id): row.stored_through for row in rows}
    return sum(known.get(which, -1) < acked for which, acked in told.items() if acked)


def judge(cluster: Cluster, rules: Iterable[Rule]) -> Counts:
    """After all journals were sent and all steps judged."""
    counts = Counts()
    _stored(cluster, counts)
    _told(cluster.store, list(rules), counts)
    _ledgers(cluster.trainers, counts)
    _reported(cluster, counts)
    return counts


def _stored(cluster: Cluster, counts: Counts) -> None:
    with cluster.store.read() as connection:
        numbers = {(row.run, row.id): row.number for row in connection.execute(select(attempts))}
        kept_steps, kept_texts = defaultdict(set), defaultdict(list)
        for row in connection.execute(select(steps.c.attempt, steps.c.step)):
            kept_steps[row.attempt].add(row.step)
        for row in connection.execute(select(completions.c.attempt, completions.c.step)):
            kept_texts[row.attempt].append(row.step)
        counts.duplicates += connection.scalar(text(_ROLLED_UP_TWICE)) or 0
    counts.duplicates += sum(len(found) - len(set(found)) for found in kept_texts.values())
    for trainer in cluster.trainers:
        for written in Written.read(trainer):
            number = numbers.get((written.run, written.attempt), -1)
            for told, kept in ((written.steps, kept_steps[number]), (written.texts, set(kept_texts[number]))):
                missing = [seq for step, seq in told.items() if step not in kept]
                counts.lost += len(missing)
                counts.acknowledged_lost += sum(seq <= written.acked for seq in missing)
                counts.reports += len(told)


def _told(store: Store, rules: list[Rule], counts: Counts) -> None:
    """Each attempt that nothing superseded has exactly the alerts that its steps give when judged in one go."""
    of_attempt = _changes(store, {rule.alert for rule in rules})
    for (run, attempt), found in of_attempt.items():
        counts.alerts += found.total()
        counts.alerts_twice += sum(times - 1 for times in found.values())
        if wrong := _illegal(found):
            counts.out_of_order += wrong
            told = sorted((rule, step, after) for rule, _, after, step in found)
            counts.notes.append(f"{run} {attempt}: changes in no order: {told}")
    for run, attempt in _newest(store).items():
        if run == TWIN:
            continue
        expected: Counter[Told] = Counter()
        for episode in episodes(replay(rules, every_step(store, attempt.number), {})):
            expected[episode.alert, episode.severity.value, "firing", episode.fired] += 1
            if episode.resolved is not None:
                expected[episode.alert, episode.severity.value, "resolved", episode.resolved] += 1
        differ = (expected - of_attempt[run, attempt.id]) + (of_attempt[run, attempt.id] - expected)
        if differ:
            counts.alerts_wrong += differ.total()
            counts.notes.append(f"{run} {attempt.id}: {dict(differ)}")


def _changes(store: Store, names: set[str]) -> dict[tuple[str, str], Counter[Told]]:
    """How often each attempt, by run and name, has each firing and each end of these rules' alerts."""
    found: dict[tuple[str, str], Counter[Told]] = defaultdict(Counter)
    with store.read() as connection:
        for row in connection.execute(select(transitions.c.body, transitions.c.after, transitions.c.step)):
            body = row.body
            if body["rule"] in names and row.after in ("firing", "resolved"):
                found[body["run"], body["attempt"]][body["rule"], body["severity"], row.after, row.step] += 1
    return found


def _newest(store: Store) -> dict[str, Any]:
    with store.read() as connection:
        return {row.run: row for row in connection.execute(select(attempts).order_by(attempts.c.ordinal))}


def _illegal(found: Counter[Told]) -> int:
    """Changes that cannot follow each other: a rule fires, then ends, then fires again."""
    wrong, by_rule = 0, defaultdict[tuple[str, str], list[tuple[int, bool]]](list)
    for rule, severity, after, step in found:
        by_rule[rule, severity].append((step, after == "firing"))
    for changes in by_rule.values():
        fires = False
        for _, same_step in itertools.groupby(sorted(changes), key=lambda change: change[0]):
            told = [firing for _, firing in same_step]
            if len(told) == 1:
                wrong += told[0] is fires
                fires = told[0]
    return wrong


def _ledgers(trainers: Iterable[Trainer], counts: Counts) -> None:
    applied: Counter[str] = Counter()
    for trainer in trainers:
        for line in read_ledger(trainer.ledger):
            if "applied" in line:
                applied[line["applied"]] += 1
                continue
            waited_s = line["took_s"] - line["starved_s"]
            counts.longest_call_s = max(counts.longest_call_s, waited_s)
            if waited_s > LONGEST_CALL_S:
                counts.hung += 1
                took = f"{line['took_s']:.1f} s, {line['starved_s']:.1f} s of it without a core"
                counts.notes.append(f"{trainer.run}: step {line['step']} took {took}; see {trainer.stacks}")
    counts.notes += [f"command {one} was applied {times} times" for one, times in applied.items() if times > 1]
    counts.commands = len(applied)
    counts.commands_twice = sum(times - 1 for times in applied.values())


def _reported(cluster: Cluster, counts: Counts) -> None:
    """Steps of the ledgers that no attempt of the run has, though they were on disk when `report` had returned."""
    kept: dict[str, set[int]] = defaultdict(set)
    with cluster.store.read() as connection:
        query = select(attempts.c.run, steps.c.step).join(attempts, attempts.c.number == steps.c.attempt)
        for row in connection.execute(query):
            kept[row.run].add(row.step)
    for trainer in cluster.trainers:
        told = [line["step"] for line in read_ledger(trainer.ledger) if line.get("on_disk")]
        if missing := sorted(set(told) - kept[trainer.run]):
            counts.reports_lost += len(missing)
            counts.notes.append(f"{trainer.ledger.stem}: steps {missing[:20]} were reported and are nowhere")
