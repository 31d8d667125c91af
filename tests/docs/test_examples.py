"""What a page tells people to run or to read is there, and can at least be parsed."""

from __future__ import annotations

import py_compile
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMED = sorted({name for page in PAGES for name in re.findall(r"\bexamples/[\w./-]*\w", page.read_text("utf-8"))})
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*") if path.suffix in (".sh", ".py"))


@pytest.mark.parametrize("name", NAMED)
def test_an_example_that_a_page_names_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_can_be_parsed(path: Path, tmp_path: Path) -> None:
    if path.suffix == ".sh":
        subprocess.run(["bash", "-n", str(path)], check=True, capture_output=True)
    else:
        py_compile.compile(str(path), cfile=str(tmp_path / "compiled"), doraise=True)


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "integrations").glob("*.md")), ids=lambda page: page.name)
def test_links_of_an_integrations_page_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_that_a_page_names_exist(page: Path) -> None:
    for name in re.findall(r"\btests/[\w./-]*\w", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name
