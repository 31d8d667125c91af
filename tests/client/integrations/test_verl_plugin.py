"""How verl gets our patches: a finder that lets modules load as ever, in processes that need not have torch."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

import pytest

from rlvitals.integrations.verl import plugin, support
from rlvitals.integrations.verl.finder import PatchingFinder

ARRIVED: list[ModuleType] = []


def arrive(module: ModuleType) -> None:
    ARRIVED.append(module)


def fail(module: ModuleType) -> None:
    raise ValueError("on purpose")


OURS = f"{__name__}:arrive"


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``toy_verl`` with modules ``tracking`` and ``broken``; our module importable by its name."""
    monkeypatch.setitem(sys.modules, __name__, sys.modules[arrive.__module__])
    folder = tmp_path / "toy_verl"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "tracking.py").write_text("VALUE = 1\n")
    (folder / "broken.py").write_text("raise KeyError('its own')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = list(sys.meta_path)
    sys.meta_path[:] = [finder for finder in kept if not isinstance(finder, PatchingFinder)]
    ARRIVED.clear()
    yield folder
    sys.meta_path[:] = kept
    for name in [name for name in sys.modules if name.startswith("toy_verl")]:
        del sys.modules[name]


def test_a_module_is_shown_once_after_it_was_executed() -> None:
    assert plugin.install({"toy_verl.tracking": OURS})
    assert not ARRIVED
    module = importlib.import_module("toy_verl.tracking")
    importlib.import_module("toy_verl.tracking")
    assert [m.VALUE for m in ARRIVED] == [1]
    assert ARRIVED[0] is module
    assert module.__spec__ is not None
    assert module.__spec__.name == "toy_verl.tracking"


def test_a_module_that_is_there_already_is_shown_at_once() -> None:
    module = importlib.import_module("toy_verl.tracking")
    assert plugin.install({"toy_verl.tracking": OURS})
    assert [module] == ARRIVED


def test_a_second_installation_changes_nothing() -> None:
    assert plugin.install({"toy_verl.tracking": OURS})
    assert plugin.install({"toy_verl.tracking": OURS})
    importlib.import_module("toy_verl.tracking")
    assert len(ARRIVED) == 1


def test_a_patch_that_fails_leaves_the_module_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_RAISE", "0")
    assert plugin.install({"toy_verl.tracking": f"{__name__}:fail", "toy_verl": "no.such.module:nothing"})
    assert importlib.import_module("toy_verl.tracking").VALUE == 1


def test_a_modules_own_error_is_its_own() -> None:
    assert plugin.install({"toy_verl.broken": OURS})
    with pytest.raises(KeyError, match="its own"):
        importlib.import_module("toy_verl.broken")
    assert not ARRIVED


def test_a_module_that_is_nowhere_is_not_found_as_ever() -> None:
    assert plugin.install({"toy_verl.nowhere": OURS})
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("toy_verl.nowhere")


class Asking:
    """As import hooks of tracing tools do: it asks all finders again, and knows that it does."""

    def __init__(self) -> None:
        self.asking = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if self.asking or not name.startswith("toy_verl."):
            return None
        self.asking = True
        try:
            return importlib.util.find_spec(name)
        finally:
            self.asking = False


@pytest.mark.parametrize("place", [0, 1])
def test_a_module_is_shown_once_where_another_finder_asks_all_finders_again(place: int) -> None:
    assert plugin.install({"toy_verl.tracking": OURS})
    sys.meta_path.insert(place, Asking())
    assert importlib.import_module("toy_verl.tracking").VALUE == 1
    assert len(ARRIVED) == 1


def test_two_finders_of_this_kind_do_not_ask_each_other_for_ever() -> None:
    sys.meta_path[:0] = [
        PatchingFinder({"toy_verl.tracking": arrive}),
        PatchingFinder({"toy_verl.tracking": arrive}),
    ]
    assert importlib.import_module("toy_verl.tracking").VALUE == 1
    assert len(ARRIVED) == 2


def test_switched_off_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "disabled")
    assert not plugin.install({"toy_verl.tracking": OURS})
    importlib.import_module("toy_verl.tracking")
    assert not ARRIVED


def test_each_patch_of_ours_is_there_by_its_name() -> None:
    for target in plugin.PATCHES.values():
        module, _, function = target.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


def test_verl_finds_us_by_its_entry_point() -> None:
    found = [point.value for point in entry_points(group="verl.plugins") if point.name == "rlvitals"]
    if not found:
        pytest.skip("INSTALLED BEFORE THERE WAS AN ENTRY POINT: run `make setup` again")
    assert found == ["rlvitals.integrations.verl"]


def test_loading_it_needs_neither_torch_nor_numpy_and_installs_only_while_verl_is_imported() -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None\n"
        "import rlvitals.integrations.verl\n"
        "from rlvitals.integrations.verl import support\n"
        "support.hooks()\n"
        "from rlvitals.integrations.verl.finder import PatchingFinder\n"
        "print(any(isinstance(f, PatchingFinder) for f in sys.meta_path))\n"
        "import types; sys.modules['verl'] = types.ModuleType('verl')\n"
        "import importlib; importlib.reload(rlvitals.integrations.verl)\n"
        "print(any(isinstance(f, PatchingFinder) for f in sys.meta_path))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_without_verl_the_doctors_table_says_so() -> None:
    rows = support.hooks().rows()
    assert {row["state"] for row in rows} == {"absent"}
    assert {row["why"] for row in rows} == {"verl is not installed here"}


def test_an_installed_verl_is_looked_at_without_importing_it(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = package.parent / "verl"
    (root / "utils").mkdir(parents=True)
    (root / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (root / "utils" / "tracking.py").write_text("class Tracking:\n    def log(self, data, step): ...\n")
    monkeypatch.setattr(support, "verl_version", lambda: "0.7.0")
    rows = {str(row["hook"]): row for row in support.hooks().rows()}
    assert rows["scalars"]["state"] == "patched"
    assert rows["batch of V0"]["state"] == "absent"
    assert not rows["batch of V0"]["optional"]
    assert rows["batch"]["optional"]
    assert "came with 0.9" in str(rows["batch"]["why"])
