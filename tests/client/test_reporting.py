"""``report_to="rlvitals"`` becomes known whoever loads transformers' table, however, and whoever else looks on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = "transformers/integrations"
LOOKED = """
import importlib, importlib.util, multiprocessing, pickle, sys
import rlvitals
NAME = "transformers.integrations.integration_utils"
def ours():
    return [finder for finder in sys.meta_path if "rlvitals" in type(finder).__module__]
def known():
    return "rlvitals" in importlib.import_module(NAME).INTEGRATION_TO_CALLBACK
"""
OTHERS = """
class Asking:
    '''As import hooks of tracing tools do: it asks all finders again, and knows that it does.'''
    def __init__(self):
        self.asking = False
    def find_spec(self, name, path=None, target=None):
        if self.asking or name != NAME:
            return None
        self.asking = True
        try:
            return importlib.util.find_spec(name)
        finally:
            self.asking = False
"""


def look(folder: Path, code: str, table: str = "INTEGRATION_TO_CALLBACK = {}\n") -> None:
    """Runs ``code`` in a fresh process whose transformers is a table and nothing else."""
    package = folder / PACKAGE
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "integration_utils.py").write_text(table)
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{LOOKED}{code}"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_name_is_entered_once_and_the_finder_leaves(tmp_path: Path) -> None:
    look(tmp_path, "assert known() and not ours()\nassert sys.modules[NAME].__spec__.loader.get_source(NAME)")


def test_somebody_who_only_asks_where_the_table_is_does_not_make_us_miss_it(tmp_path: Path) -> None:
    look(tmp_path, "spec = importlib.util.find_spec(NAME)\nassert spec.loader.get_source(NAME)\nassert known()")


def test_reloading_us_adds_no_second_finder(tmp_path: Path) -> None:
    code = (
        "importlib.reload(rlvitals.reporting); importlib.reload(rlvitals)\nassert len(ours()) == 1\nassert known()"
    )
    look(tmp_path, code)


@pytest.mark.parametrize("place", ["insert(0, ", "insert(1, "])
def test_a_finder_that_asks_all_others_stands_before_or_behind_ours(tmp_path: Path, place: str) -> None:
    look(tmp_path, f"{OTHERS}\nsys.meta_path.{place}Asking())\nassert known() and not ours()")


def test_a_broken_transformers_fails_as_ever_and_is_known_once_it_is_mended(tmp_path: Path) -> None:
    code = f"""
import pathlib
for _ in range(2):
    try:
        importlib.import_module(NAME)
        raise SystemExit("it should have failed")
    except KeyError:
        pass
place = pathlib.Path({str(tmp_path / PACKAGE / "integration_utils.py")!r})
place.write_text("INTEGRATION_TO_CALLBACK = dict(other=1)")
importlib.invalidate_caches()
assert known() and not ours()
"""
    look(tmp_path, code, table="raise KeyError('its own')\n")


def test_without_transformers_its_import_fails_as_ever() -> None:
    code = f"{LOOKED}\nsys.path = []\ntry:\n    known()\nexcept ModuleNotFoundError:\n    raise SystemExit(7)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 7
