"""``rlvitals replay``: one line and whole runs, by the live engine."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from rlvitals_monitor.importers.past_run import read_past_run
from rlvitals_monitor.replay import main, replay_log, sparkline
from rlvitals_monitor.rules.loader import load_rules


def write(folder: Path, text: str) -> Path:
    path = folder / "run.log"
    path.write_text(text)
    return path


def test_one_line_is_enough_for_what_needs_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(
        tmp_path, "step:80 - actor/grad_norm:nan - response_length/clip_ratio:1.0 - critic/score/mean:0.0\n"
    )
    assert main([str(log), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 1
    assert told["incidents"][0]["cause"] == "nan_inf"
    assert {code for alert in told["alerts"] for code in alert["codes"]} >= {"nan_inf", "truncation_saturation"}
    assert any("baseline" in entry["reason"] or "seen" in entry["reason"] for entry in told["dormant"])


def test_what_only_a_first_step_means_is_not_said_of_a_log_that_may_begin_anywhere(tmp_path: Path) -> None:
    text = "{'loss': 0.0, 'kl': 0.3, 'reward': 1.0}\n{'loss': 0.0, 'kl': 0.3, 'reward': 1.0}\n"
    counted = replay_log(read_past_run(write(tmp_path, text)), load_rules())
    assert [episode.alert for episode in counted.episodes] == []
    told = text.replace("{'loss'", "{'step': 1, 'loss'", 1).replace("\n{'loss'", "\n{'step': 2, 'loss'")
    stepped = replay_log(read_past_run(write(tmp_path, told)), load_rules())
    assert [episode.alert for episode in stepped.episodes] == ["reference_mismatch"]


def test_a_long_log_needs_the_rules_full_persistence(tmp_path: Path) -> None:
    lines = [f"step:{n} - completions/clipped_ratio:{1.0 if n == 20 else 0.01}" for n in range(1, 60)]
    found = replay_log(read_past_run(write(tmp_path, "\n".join(lines))), load_rules())
    assert [e.alert for e in found.episodes if e.severity.value == "critical"] == []


def test_a_healthy_log_is_quiet_and_says_what_it_could_not_see(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{{'loss': 0.0, 'grad_norm': 0.5, 'reward': {0.5 + n / 1000}, 'mine': 1}}" for n in range(60)]
    assert main([str(write(tmp_path, "\n".join(lines)))]) == 0
    said = capsys.readouterr().out
    assert "Nothing would have rung" in said
    assert "Quiet for want of a signal" in said
    assert "mine" in said


def test_hostile_text_in_a_log_steers_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(write(tmp_path, "{'loss': 1.0, 'reward' \x1b]0;owned\x07\u202e 2}\n{'loss': 1, '\x07x': 2}\n"))])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\u202e" not in said


@pytest.mark.parametrize("arguments", [["absent.log"], ["absent.log", "--rules", "absent.yaml"]])
def test_what_cannot_be_read_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "absent" in capsys.readouterr().err


def test_a_sparkline_shows_what_is_not_finite() -> None:
    assert sparkline([0.0, 1.0, float("nan"), float("inf"), float("-inf")]) == "▁█!^v"
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([-1.7e308, 1.7e308]) == "▁█"
    assert sparkline([]) == ""


def test_a_log_without_a_step_is_no_healthy_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "run.log"
    log.write_text("loading model\nall is well\n")
    assert main([str(log)]) == 2
    told = capsys.readouterr()
    assert "no training step was found" in told.err
    assert "Nothing would have rung" not in told.out


def test_a_log_of_which_no_rule_knows_a_name_is_no_healthy_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(write(tmp_path, '{"step": 1, "mine": 0.5}\n{"step": 2, "mine": 0.5}'))])
    said = capsys.readouterr().out
    assert "Nothing could be judged" in said
    assert "would have rung" not in said


def test_any_text_can_be_printed_as_json_and_in_any_encoding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text('{"step": 1, "loss": 1.0, "\\ud800\\u202e\\u001b[31m": 2}\n')
    assert main([str(log), "--json"]) == 0
    assert capsys.readouterr().out.isascii()
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    assert main([str(log)]) == 0
    assert b"\\u202e" in stream.buffer.getvalue()
    assert b"\x1b" not in stream.buffer.getvalue()


@pytest.mark.parametrize("every", ["0", "-5", "9" * 30, "x"])
def test_a_stride_is_a_number_of_steps(every: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run.log", "--every", every])
    assert "--every: invalid stride value" in capsys.readouterr().err
