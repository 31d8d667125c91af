"""What each trainer gives and can be asked for: the page docs/integrations/README.md, from the rows beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rlvitals.contract.command import CommandKind
from rlvitals.contract.metrics import Family

Row = Family | CommandKind
HERE_FROM = "../../"
"""From the page to the root of the repository."""


class Answer(str, Enum):
    WORKS = "works"
    NOT = "no"
    UNTESTED = "untested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """``said`` is the reason, or the limits of what works; ``proof`` names tests as ``file::test``."""

    answer: Answer
    said: str = ""
    proof: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Some releases of a trainer, or one of its loops in them. ``rows`` differ from the trainer's."""

    title: str
    versions: tuple[str, ...]
    rows: Mapping[Row, Cell] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """``support`` is the module whose ``VERSIONS`` the columns must cover; "" where there are no releases."""

    title: str
    page: str
    attach: str
    columns: tuple[Column, ...]
    rows: Mapping[Row, Cell]
    support: str = ""

    def cell(self, row: Row, column: Column) -> Cell:
        return column.rows.get(row) or self.rows[row]


def works(*proof: str, said: str = "") -> Cell:
    return Cell(answer=Answer.WORKS, said=said, proof=proof)


def cannot(said: str) -> Cell:
    return Cell(answer=Answer.NOT, said=said)


def untested(said: str = "") -> Cell:
    return Cell(answer=Answer.UNTESTED, said=said)


def all_of(cell: Cell, *rows: Row) -> dict[Row, Cell]:
    """The same answer in several rows."""
    return dict.fromkeys(rows, cell)


VERBS: tuple[Row, ...] = tuple(CommandKind)
SIGNALS: tuple[Row, ...] = tuple(Family)
ROWS: tuple[Row, ...] = (*SIGNALS, *VERBS)
CLIENT, REAL = "tests/client/integrations/", "tests/trainers/"
"""Where quick tests and those of real trainers lie."""
TITLES: Mapping[Row, str] = {
    Family.TEXT: "text health",
    Family.LENGTH: "lengths, truncation",
    Family.REWARD: "rewards, groups, advantages",
    Family.COMPONENT: "reward components",
    Family.KL: "KL and its gradient",
    Family.RATIO: "importance ratios",
    Family.CORRECTION: "importance correction",
    Family.POLICY: "loss, entropy, forced tokens",
    Family.CRITIC: "critic",
    Family.GRADIENT: "gradients, updates",
    Family.NUMERICS: "NaN, infinities, logits",
    Family.GUARD: "guards",
    Family.PROGRESS: "times, tokens, memory",
    Family.SELF: "RL Vitals itself",
}
HEAD = """# Trainers

One line, or none. What each trainer gives, release by release, and what it can be asked for; **works** has a test
behind it that ran that trainer (or, where it is said, objects of its shape), *no* has its reason, and what was not
tried is called untested. Within a family single metrics may be missing: the run page says which, and why.

| trainer | the line | more |
|---|---|---|
"""


FOR_ALL = """
For all of them:

- **Before the job**: `rlvitals doctor` in its environment tells whether it is seen: [doctor.md](../doctor.md).
- **Where to**: `RLVITALS_URL` and `RLVITALS_TOKEN`; on the service's own machine neither is needed.
- **Off**: `RLVITALS_MODE=disabled` in the job's environment: nothing is measured, nothing is written. Or
  `pip uninstall rlvitals`, and take out the line or the flags that you added.
- **Texts**: of each step a few completions go to the service, with prompt, reward and the bytes of their tokens;
  with `RLVITALS_TEXTS=0` only counts do. How they are read: [dashboard.md](../dashboard.md#texts).
- **If the service dies**, training goes on. Steps wait on disk (`~/.rlvitals/spool`) and are sent when it answers
  again, or later by `rlvitals sync`; a pause ends by itself.
- **What it costs** a step is measured by switching our hooks within one job: [cost.md](cost.md).
- **What is not seen** is said on the run page beside each metric, and at the end of each trainer's page.
"""


def matrix_page(trainers: tuple[Trainer, ...]) -> str:
    lines = "".join(f"| {t.title} | {t.attach} | [{t.page}]({t.page}) |\n" for t in trainers)
    return HEAD + lines + FOR_ALL + "".join(_trainer(trainer) for trainer in trainers)


def _trainer(trainer: Trainer) -> str:
    titles = [column.title for column in trainer.columns]
    head = f"\n## {trainer.title}\n\n| | {' | '.join(titles)} |\n|---{'|---' * len(titles)}|\n"
    notes: list[str] = []
    body = "".join(_row(trainer, row, notes) for row in ROWS)
    told = "".join(f"{place}. {note}\n" for place, note in enumerate(notes, start=1))
    return f"{head}{body}" + (f"\n{told}" if told else "")


def _row(trainer: Trainer, row: Row, notes: list[str]) -> str:
    title = f"`{row.value}`" if isinstance(row, CommandKind) else TITLES[row]
    cells = [_cell(trainer.cell(row, column), notes) for column in trainer.columns]
    return f"| {title} | {' | '.join(cells)} |\n"


def _cell(cell: Cell, notes: list[str]) -> str:
    """The answer, a link to the first test behind it, and the number of its note."""
    word = {Answer.WORKS: "**works**", Answer.NOT: "*no*", Answer.UNTESTED: "untested"}[cell.answer]
    if cell.proof:
        word = f"[{word}]({HERE_FROM}{cell.proof[0].partition('::')[0]})"
    if not cell.said:
        return word
    if cell.said not in notes:
        notes.append(cell.said)
    return f"{word} ({notes.index(cell.said) + 1})"


def proofs(trainers: tuple[Trainer, ...]) -> Iterator[tuple[str, str]]:
    """(where it is claimed, ``file::test``) for everything that is said to work."""
    for trainer in trainers:
        for column in trainer.columns:
            for row in ROWS:
                for proof in trainer.cell(row, column).proof:
                    yield f"{trainer.title}, {column.title}, {row.value}", proof
