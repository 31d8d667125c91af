"""The house itself: what the README promises exists, and what is generated is fresh."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate import stale

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def test_generated_pages_say_what_the_code_says() -> None:
    assert stale() == []


@pytest.mark.parametrize("target", ["demo", "test", "check", "bench", "serve"])
def test_make_knows_the_target(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_continuous_integration_runs_what_people_run() -> None:
    commands = (ROOT / ".ci" / "run").read_text().splitlines()
    assert commands[-2:] == ["make check", "make test"]


def test_the_bare_install_depends_on_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == []


def test_every_pin_is_inside_the_range_that_users_get() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = [*project["project"]["optional-dependencies"].values(), *project["dependency-groups"].values()]
    ranges = {r.name.lower(): r for r in (Requirement(line) for one in lists for line in one)}
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    for line in lines:
        pin = Requirement(line)
        if pin.name in ranges:
            version = next(iter(pin.specifier)).version
            assert ranges[pin.name].specifier.contains(version), line


def test_the_image_carries_all_four_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    copied = re.findall(r"^COPY (\S+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for package in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        assert package.split("/")[0] in copied


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"):
        for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / page).read_text()):
            assert (ROOT / link).exists(), f"{page} links to {link}"


def test_importing_the_client_loads_nothing_of_others_and_nothing_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import rlvitals; "
        "new = {m.split('.')[0] for m in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'rlvitals'}))"
    )
    answer = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
