"""The matrix of trainers claims nothing that no test shows, and leaves nothing out."""

from __future__ import annotations

import ast
import importlib
from functools import lru_cache
from pathlib import Path

import pytest

from docs.generate import stale
from docs.matrix import ROWS, Answer, Trainer, proofs
from docs.matrix_rows import TRAINERS
from rlvitals.contract.command import CommandKind
from rlvitals.contract.metrics import Family

ROOT = Path(__file__).parents[2]
IDS = [trainer.title for trainer in TRAINERS]


@lru_cache
def functions_of(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))


def test_the_page_is_what_the_table_says() -> None:
    assert "integrations/README.md" not in stale()


@pytest.mark.parametrize("trainer", TRAINERS, ids=IDS)
def test_every_family_and_every_command_has_a_row(trainer: Trainer) -> None:
    assert set(ROWS) == {*Family, *CommandKind}
    for column in trainer.columns:
        for row in ROWS:
            cell = trainer.cell(row, column)
            assert cell.answer is not Answer.WORKS or cell.proof, f"{column.title}: {row.value} has no test"
            assert cell.answer is not Answer.NOT or cell.said, f"{column.title}: {row.value} has no reason"


def test_what_is_said_to_work_is_shown_by_a_test_that_exists() -> None:
    lost = [
        f"{where}: {proof}"
        for where, proof in proofs(TRAINERS)
        if not (ROOT / proof.partition("::")[0]).is_file()
        or proof.partition("::")[2] not in functions_of(proof.partition("::")[0])
    ]
    assert lost == []


@pytest.mark.parametrize("trainer", [t for t in TRAINERS if t.support], ids=lambda t: t.title)
def test_the_columns_are_the_releases_that_were_tried(trainer: Trainer) -> None:
    tried = importlib.import_module(trainer.support).VERSIONS
    shown = {version for column in trainer.columns for version in column.versions}
    assert shown == set(tried)


@pytest.mark.parametrize("trainer", TRAINERS, ids=IDS)
def test_each_trainer_has_a_page_that_the_readme_leads_to(trainer: Trainer) -> None:
    assert (ROOT / "docs/integrations" / trainer.page).is_file()
    assert f"docs/integrations/{trainer.page}" in (ROOT / "README.md").read_text(encoding="utf-8")
