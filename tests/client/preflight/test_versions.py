"""V1 and V2: a table of releases, its ranges and what switches a fault on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rlvitals.preflight.command import main
from rlvitals.preflight.finding import Verdict
from rlvitals.preflight.versions import FAULTS, installed, judge_versions, release


def test_a_known_bad_release_is_named_with_fix_and_public_reference() -> None:
    found = [f for f in judge_versions({"verl": "0.3.0.post1"}) if f.verdict is Verdict.WARN]
    assert ["verl 0.3.0.post1" in f.subject for f in found] == [True]
    assert "verl-project/verl#747" in found[0].evidence
    assert "0.4.0" in found[0].fix
    assert not [f for f in judge_versions({"verl": "0.4.0"}) if f.verdict is Verdict.WARN]


@pytest.mark.parametrize(
    ("version", "bad"), [("0.25.1", False), ("0.26.0", True), ("1.9.2", True), ("1.10.0", False)]
)
def test_a_fault_that_needs_a_setting_is_told_where_it_is_on(version: str, bad: bool) -> None:
    on = list(judge_versions({"trl": version}, frozenset({"vllm_enable_sleep_mode"})))
    assert any(f.verdict is Verdict.FATAL for f in on) is bad
    assert all(f.verdict is not Verdict.FATAL for f in judge_versions({"trl": version}))


@pytest.mark.parametrize(("version", "told", "limit"), [("1.16.0", ["warn"], "skipped"), ("0.25.0", [], "ok")])
def test_a_prompt_limit_that_trl_no_longer_has_is_told_and_not_believed(
    version: str, told: list[str], limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, config = tmp_path / "d.jsonl", tmp_path / "c.json"
    data.write_text('{"prompt": "Hello there."}\n')
    config.write_text('{"num_generations": 8, "max_prompt_length": 512, "output_dir": "out"}')
    main(["--data", str(data), "--config", str(config), "--package", f"trl=={version}", "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    named = [f for f in found if f["check"] == "V1" and "max_prompt_length" in f["subject"]]
    assert [f["verdict"] for f in named] == told
    assert [f["verdict"] for f in found if f["check"] == "L2"] == [limit]


def test_nothing_bad_is_said_to_be_well_and_nothing_given_to_be_skipped() -> None:
    assert [f.verdict for f in judge_versions({"torch": "2.13.0+cpu"})] == [Verdict.OK]
    assert [f.verdict for f in judge_versions({})] == [Verdict.SKIPPED]
    assert [f.verdict for f in judge_versions({"trl": "main"})] == [Verdict.OK]


def test_the_namesake_on_the_package_index_is_told() -> None:
    assert [f.check for f in judge_versions({"slime": "0.0.0"}) if f.verdict is Verdict.WARN] == ["V2"]
    assert all(f.check != "V2" for f in judge_versions({"slime": "0.3.1"}))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.16.0", (1, 16, 0)),
        ("v0.2", (0, 2)),
        ("0.2.0.post2", (0, 2, 0)),
        ("2.0.0rc1", (2, 0, 0)),
        ("main", None),
    ],
)
def test_versions_are_read_as_numbers(text: str, numbers: tuple[int, ...] | None) -> None:
    assert release(text) == numbers


def test_every_row_of_the_table_has_a_range_a_fix_and_a_public_reference() -> None:
    for fault in FAULTS:
        assert fault.fix
        assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", fault.reference)
        assert fault.before is None or fault.since < fault.before


def test_what_is_installed_is_found_without_importing_it() -> None:
    assert installed(("pytest", "no-such-package")) == {"pytest": pytest.__version__}
