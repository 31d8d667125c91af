"""`rlvitals check` as people run it: what it prints, what it returns, and what it refuses."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlvitals import cli
from rlvitals.preflight import command
from rlvitals.preflight.finding import Finding, Report, Verdict
from rlvitals.preflight.table import as_json, table
from rlvitals.preflight.terminal import coloured, escaped, padded, width, wrapped
from rlvitals.progress import ProgressBar

S, E = "<|im_start|>", "<|im_end|>"


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    rows = [{"prompt": f"{S}user\nQ{n}{E}\n{S}assistant\n", "completion": f"A{n}{E}"} for n in range(40)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path / "train.jsonl"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    values = {"num_generations": 8, "max_completion_length": 256, "beta": 0.01, "logging_nan_inf_filter": False}
    (tmp_path / "grpo.json").write_text(json.dumps(values))
    return tmp_path / "grpo.json"


GOOD = ["--package", "torch==2.13.0"]
"""No trainer's release, so that what is installed does not speak."""


def test_a_healthy_run_gets_a_clean_bill(
    healthy: Path, settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["check", "--data", str(healthy), "--config", str(settings), *GOOD, "--strict"]) == 0
    out = capsys.readouterr()
    assert "FATAL" not in out.out
    assert "WARN" not in out.out
    assert out.err == ""
    assert "D1 D2 D3" in out.out


def test_fatal_findings_exit_with_2_and_warnings_with_1_where_they_are_strict(
    healthy: Path, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["check", "--data", str(healthy), "--config", str(settings), *GOOD]
    warned = [*run, "--set", "save_strategy=no"]
    assert cli.main(warned) == 0
    assert cli.main([*warned, "--strict"]) == 1
    assert "No checkpoint to return to" in capsys.readouterr().out
    assert cli.main([*run, "--set", "num_generations=1", "--strict"]) == 2
    healthy.write_bytes(healthy.read_bytes() + b"\xff\n")
    assert cli.main(run) == 2


def test_json_says_the_same_to_a_program(healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    healthy.write_bytes(healthy.read_bytes() + json.dumps({"prompt": "\x1b[31mred‮"}).encode() + b"\n")
    code = cli.main(["check", "--data", str(healthy), "--json", *GOOD])
    out = capsys.readouterr().out
    report = json.loads(out)
    assert report["exit_code"] == code == 2
    assert report["worst"] == "fatal"
    assert {f["check"] for f in report["findings"] if f["verdict"] == "fatal"} == {"D16"}
    assert set(report["findings"][0]) == {"check", "verdict", "subject", "evidence", "fix", "where"}
    assert out.isascii()


def test_settings_may_be_the_words_of_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "python",
        "-m",
        "verl.trainer.main_ppo",
        "algorithm.adv_estimator=grpo",
        "actor_rollout_ref.rollout.n=1",
    ]
    assert cli.main(["check", *GOOD, "--", *words]) == 2
    assert "Groups of one" in capsys.readouterr().out


def test_limits_may_be_given_without_any_settings(healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = json.dumps({"prompt": f"{S}user\nQ{E}\n{S}assistant\n", "completion": "word " * 400 + E})
    healthy.write_text("".join(row.replace("Q", f"Q{n}") + "\n" for n in range(40)))
    assert cli.main(["check", "--data", str(healthy), "--max-completion-length", "256", *GOOD]) == 2
    assert "max_completion_length" in capsys.readouterr().out


REFUSED = {
    "nothing": ([], "nothing to check"),
    "absent data": (["--data", "no/such/file.jsonl"], "--data: no such file or folder: no/such/file.jsonl"),
    "absent settings": (["--config", "none.yaml"], "--config: no such file"),
    "absent tokenizer": (["--tokenizer", "/no/such/folder"], "--tokenizer: no such file"),
    "no value": (["--set", "beta"], "--set: expected NAME=VALUE, got 'beta'"),
    "no version": (["--package", "trl"], "--package: expected NAME==VERSION"),
    "a name of any length": (["--data", "x" * 5000], "--data: no such file or folder: xxx"),
    "two settings": (["--config", "x.yaml", "--", "--beta", "1"], "not from both"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused_in_one_line(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, told = REFUSED[case]
    assert cli.main(["check", *arguments]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--max-completion-length", "0"], "expected a number above 0"),
        (["--max-completion-length", "many"], "expected a number above 0, got many"),
        (["--trainer", "tlr"], "expected one of TRL, verl, OpenRLHF, slime"),
    ],
)
def test_wrong_values_say_what_was_expected(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_unreadable_settings_are_a_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.json").write_text("{")
    assert cli.main(["check", "--config", str(tmp_path / "a.json")]) == 2
    assert "The settings can't be read" in capsys.readouterr().out


def test_help_shows_examples_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "rlvitals check --data train.jsonl" in out
    assert "exit status" in out
    assert cli.main([]) == 2
    assert "check tokenizer, data and settings before the first step" in capsys.readouterr().out


def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "TOKENIZER_PACKAGES", ("no_such_package",))
    assert cli.main(["check", "--model", "some/model"]) == 2
    assert "a tokenizer needs no_such_package" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "rlvitals.preflight.command", None)
    assert cli.main(["check", "--help"]) == 2
    assert "pip install 'rlvitals[check]'" in capsys.readouterr().err


def test_data_and_settings_are_checked_without_any_third_party_package(healthy: Path, settings: Path) -> None:
    code = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        third = 'numpy torch transformers tokenizers yaml pyarrow rich jinja2 sentencepiece tiktoken'\n"
        "        if name.split('.')[0] in third.split():\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "from rlvitals.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    arguments = ["check", "--data", str(healthy), "--config", str(settings), *GOOD]
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "D1 D2" in ended.stdout


def _run(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "rlvitals.cli", "check", *words], check=False, **more)


def test_a_report_that_cannot_be_written_is_told_in_one_line(healthy: Path) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("NO FULL DISK TO TRY: /dev/full is absent")
    with open("/dev/full", "wb") as full:
        ended = _run("--data", str(healthy), stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 2
    assert ended.stderr.count(b"\n") == 1
    assert b"No space left" in ended.stderr


def test_a_reader_that_leaves_and_closed_streams_are_no_fault(healthy: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    gone = _run("--data", str(healthy), "--all", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (gone.returncode, gone.stderr) == (0, b"")
    shut = 'exec "$0" -m rlvitals.cli check --data "$1" >&- 2>&-'
    assert subprocess.run(["sh", "-c", shut, sys.executable, str(healthy)], check=False).returncode == 0


def test_settings_reach_the_checks_of_the_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chatml = pytest.importorskip("tests.client.preflight.chatml", reason="NO TOKENIZER: transformers is missing")
    chatml.build(padding_side="right").save_pretrained(tmp_path / "model")
    settings = tmp_path / "grpo.json"
    settings.write_text('{"num_generations": 8, "max_completion_length": 512, "scale_rewards": "group"}')
    words = ["--tokenizer", str(tmp_path / "model"), "--json"]
    for more, verdict in (
        ([], "warn"),
        (["--config", str(settings)], "info"),
        (["--set", "num_generations=8", "--trainer", "TRL"], "info"),
        (
            ["--", "x.py", "--num_generations", "8", "--scale_rewards", "group", "--max_completion_length=9"],
            "info",
        ),
    ):
        command.main([*words, *more])
        found = json.loads(capsys.readouterr().out)["findings"]
        assert [f["verdict"] for f in found if f["check"] == "T21"] == [verdict], more


def test_the_samplers_mask_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chatml = pytest.importorskip("tests.client.preflight.chatml", reason="NO TOKENIZER: transformers is missing")
    chatml.build().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": chatml.ROWS}))
    for flag, verdict in (("--sampler-masks", "ok"), ("--no-sampler-masks", "warn")):
        command.main(["--model", str(tmp_path), "--json", flag])
        found = json.loads(capsys.readouterr().out)["findings"]
        assert verdict in [f["verdict"] for f in found if f["check"] == "T2"], flag


def test_a_model_folder_brings_its_tokenizer_template_and_context(
    tmp_path: Path, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.client.preflight import chatml

    folder = tmp_path / "model"
    chatml.build().save_pretrained(folder)
    config = {"model_type": "qwen2", "vocab_size": chatml.ROWS, "max_position_embeddings": 512}
    (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": chatml.TURN_END}))
    stops = {"eos_token_id": [chatml.TURN_END, chatml.END_OF_TEXT]}
    (folder / "generation_config.json").write_text(json.dumps(stops))
    run = ["check", "--model", str(folder), "--data", str(healthy), "--max-completion-length", "64", "--json"]
    run += GOOD
    assert cli.main(run) == 0
    found = {f["check"]: f for f in json.loads(capsys.readouterr().out)["findings"]}
    assert "counted" in found["L1"]["evidence"]
    assert found["L3"]["evidence"].endswith("max_position_embeddings = 512")
    assert cli.main([*run, "--chat-template", chatml.LLAMA_TEMPLATE]) == 2
    told = json.loads(capsys.readouterr().out)["findings"]
    assert {f["check"] for f in told if f["verdict"] == "fatal"} >= {"T9", "D16"}
    assert any("Llama 3" in f["subject"] for f in told)


# -- table and terminal --------------------------------------------------------------------------------------

HOSTILE = "\x1b]0;title\x07\x1b[2J \u202egnp.exe\u2066 \x00\x9b31m \ud800 \ue000 \ufeff 中文 e\u0301"
REPORT = Report.of(
    [
        Finding(
            check="D5", verdict=Verdict.WARN, subject=HOSTILE, evidence=HOSTILE * 5, fix=HOSTILE, where=HOSTILE
        ),
        Finding(check="D3", verdict=Verdict.FATAL, subject="Broken", evidence="x" * 300, fix="y " * 80),
        Finding(check="D1", verdict=Verdict.OK, subject="Fine", evidence="3 rows"),
        Finding(check="L3", verdict=Verdict.SKIPPED, subject="Context", evidence="not known"),
    ]
)


@pytest.mark.parametrize("columns", [40, 60, 83, 84, 100, 160])
def test_the_table_fits_and_holds_no_character_that_moves_the_screen(columns: int) -> None:
    text = table(REPORT, columns)
    assert max(map(width, text.splitlines())) <= columns
    assert not set(text) & set("\x1b\x07\x00\x9b\u202e\u2066\ud800\ue000\ufeff")
    assert "中文" in text.replace("\n", "").replace(" ", "") or columns < 60
    assert text.index("FATAL") < text.index("WARN") < text.index("OK")
    assert "L3: not known" in text


def test_all_checks_get_a_line_where_it_is_asked_for() -> None:
    assert "Fine" not in table(REPORT, 100)
    assert "Fine" in table(REPORT, 100, show_all=True)


def test_colour_marks_verdicts_and_nothing_else() -> None:
    text = table(REPORT, 100, colour=True)
    assert "\x1b[1;31mFATAL" in text
    assert text.count("\x1b") == 2 * 3
    assert "a clean bill" in table(Report.of([]), 80)


def test_json_keeps_what_the_table_escapes() -> None:
    whole = json.loads(as_json(REPORT, "1", 2))
    assert whole["findings"][0]["subject"] == HOSTILE


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_and_not_for_those_who_want_none() -> None:
    assert coloured(Screen(), {})
    assert not coloured(io.StringIO(), {})
    assert not coloured(Screen(), {"NO_COLOR": "1"})
    assert not coloured(Screen(), {"TERM": "dumb"})


def test_a_bar_is_drawn_on_a_terminal_only_and_wiped_at_the_end() -> None:
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        bar = ProgressBar(stream, "reading", 60)
        bar(50, 100)
        bar.close()
    assert "50 %" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    assert pipe.getvalue() == ""
    assert ProgressBar(screen, "reading").line(7, None) == "reading 7"
    assert len(ProgressBar(screen, "reading", 20).line(200, 100)) < 20


def test_text_is_escaped_wrapped_and_padded_by_its_columns() -> None:
    assert escaped("plain é 中") == "plain é 中"
    assert escaped("a\nb\x1b\u200b\U000e0001") == "a\\nb\\x1b\\u200b\\U000e0001"
    assert width("中e\u0301") == 3
    assert list(wrapped("aa bb cc", 5)) == ["aa bb", "cc"]
    assert list(wrapped("中" * 5, 4)) == ["中中", "中中", "中"]
    assert padded("中", 4) == "中  "
