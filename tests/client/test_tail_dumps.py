"""Dumped completions beside the logs: texts, rewards and groups of the step that the trainer logged."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="the probes are not installed: NO TEST OF DUMPED COMPLETIONS")

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from rlvitals.contract.report import StepReport, Text
from rlvitals.follow import Follower
from rlvitals.formats.dumps import is_dump, read_dump
from rlvitals.reporter import Reporter
from rlvitals.settings import Mode
from rlvitals.spool import journals
from rlvitals.tail import Tail, files, main
from rlvitals.tail_dumps import Dumps
from tests.client.conftest import MakeReporter
from tests.client.service import Reply, Service

GOOD = ["the answer is four", "it is four", "perhaps five", "no idea at all"]


@pytest.fixture
def reporter(make_reporter: MakeReporter) -> Reporter:
    return make_reporter(mode=Mode.OFFLINE)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(BPE({letter: place for place, letter in enumerate(alphabet)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    path = tmp_path / "model" / "tokenizer.json"
    path.parent.mkdir()
    core.save(str(path))
    return path


def dump(folder: Path, step: int, outputs: Sequence[str], scores: Sequence[Any] = (1.0, 1.0, 0.0, 1.0)) -> Path:
    """As verl writes it, a record a completion, two groups whose members do not stand together."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{step}.jsonl"
    records = [
        {"input": f"prompt {n % 2}", "output": text, "gts": "4", "score": score, "step": step, "acc": score == 1.0}
        for n, (text, score) in enumerate(zip(outputs, scores, strict=True))
    ]
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
    return path


def read(folder: Path, kind: type) -> list[Any]:
    found: list[Any] = []
    for journal in journals(folder):
        follower = Follower(journal)
        found += [item.record for item in follower.read(10_000) if isinstance(item.record, kind)]
        follower.close()
    return found


def told(reporter: Reporter, paths: Sequence[Path], **settings: Any) -> list[StepReport]:
    dumps = Dumps(paths, **settings)
    assert dumps.prepare() == ""
    tail = Tail(files(paths), reporter, dumps=dumps)
    tail.poll()
    tail.finish()
    return read(reporter.settings.spool, StepReport)


def test_a_dump_goes_with_the_scalars_of_its_step(reporter: Reporter, tmp_path: Path, tokenizer: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("step:1 - actor/grad_norm:0.5\nstep:2 - actor/grad_norm:0.6\n")
    for step in (1, 2):
        dump(tmp_path / "rollouts", step, GOOD)
    first, second = told(reporter, [log, tmp_path / "rollouts"], tokenizer=str(tokenizer))
    assert (first.step, second.step) == (1, 2)
    assert second.values["gradient.norm"] == 0.6
    assert second.values["reward.mean"] == 0.75
    assert second.values["reward.zero_std_groups"] == 0.5, "a group is one prompt, wherever its rows stand"
    assert second.values["text.script_latin_share"] == 1.0
    assert second.values["text.repetition_4gram"] >= 0
    assert second.values["length.completions"] == 4
    assert second.values["retokenized/length/max"] == len(GOOD[0])


def test_what_decoded_text_cannot_tell_is_missing_and_says_so(
    reporter: Reporter, tmp_path: Path, tokenizer: Path
) -> None:
    dump(tmp_path, 1, ["broken \ufffd\ufffd here", "fine", "fine \ufffd", ""])
    (step,) = told(reporter, [tmp_path], tokenizer=str(tokenizer))
    assert step.values["text.decoded_replacement_count"] == 3
    for name in (
        "text.invalid_utf8_count",
        "text.literal_replacement_per_1k",
        "length.mean",
        "length.truncation_rate",
    ):
        assert name not in step.values
        assert "decoded text" in step.missing[name]
    assert step.values["length.empty_rate"] == 0.25
    assert not step.extremes.keys() & {"text.invalid_utf8_count", "length.max"}


def test_without_a_tokenizer_text_alone_gives_scripts_packing_and_duplicates(
    reporter: Reporter, tmp_path: Path
) -> None:
    dump(tmp_path, 1, ["да да да", "same", "нет", "same"])
    (step,) = told(reporter, [tmp_path])
    assert step.values["text.script_cyrillic_share"] == pytest.approx(9 / 17)
    assert step.values["text.foreign_script_share"] == pytest.approx(9 / 17)
    assert step.values["text.duplicate_rate"] == 0.25
    assert step.values["text.compression_ratio"] > 0
    assert step.values["text/characters/max"] == 8
    assert "--tokenizer" in step.missing["text.repetition_4gram"]
    assert "text.longest_run" not in step.values


def test_a_loop_is_seen_in_text_encoded_again(reporter: Reporter, tmp_path: Path, tokenizer: Path) -> None:
    dump(tmp_path, 1, ["again and again " * 80, *GOOD[1:]])
    (step,) = told(reporter, [tmp_path], tokenizer=str(tokenizer))
    assert step.values["text.looping_completions"] == 0.25


@pytest.mark.parametrize(
    ("score", "nonfinite"), [(math.nan, 1), (math.inf, 1), (-math.inf, 1), (None, 1), (True, 0)]
)
def test_each_kind_of_score_is_what_it_is(
    reporter: Reporter, tmp_path: Path, score: float | None, nonfinite: int
) -> None:
    dump(tmp_path, 1, GOOD, [score, 0.0, 0.0, 0.0])
    (step,) = told(reporter, [tmp_path])
    assert step.values["numerics.nonfinite_rewards"] == nonfinite


def test_a_dump_without_rewards_says_that_there_are_none(reporter: Reporter, tmp_path: Path) -> None:
    (tmp_path / "3.jsonl").write_text('{"prompt": "a", "response": "b \\ud83d"}\n')
    (step,) = told(reporter, [tmp_path])
    assert step.step == 3
    assert "reward.mean" in step.missing
    assert step.values["text.decoded_replacement_count"] == 1, "half a character is none"


def test_trls_table_is_read(reporter: Reporter, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: NO TEST OF TABLES")
    from pyarrow import parquet

    (tmp_path / "completions").mkdir()
    table = {
        "step": [7] * 4,
        "prompt": [[{"role": "user", "content": f"p{n // 2}"}] for n in range(4)],
        "completion": [[{"role": "assistant", "content": text}] for text in GOOD],
        "length_reward": [0.5, 0.5, 1.0, math.nan],
        "accuracy_reward": [1.0, 1.0, 1.0, math.nan],
        "advantage": [0.0] * 4,
    }
    parquet.write_table(pyarrow.table(table), tmp_path / "completions" / "completions_00007.parquet")
    (step,) = told(reporter, [tmp_path])
    assert step.step == 7
    assert step.values["rewards/accuracy_reward/mean"] == 1.0
    assert step.values["numerics.nonfinite_rewards"] == 1
    assert step.values["reward.group_size"] == 2


def test_the_trainers_own_number_goes_before_that_of_its_dump(reporter: Reporter, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("step:1 - critic/score/mean:0.5 - actor/grad_norm:1\n")
    dump(tmp_path / "rollouts", 1, GOOD)
    (step,) = told(reporter, [tmp_path])
    assert step.values["reward.mean"] == 0.5


def test_completions_are_kept_with_their_place_in_the_dump_or_not_at_all(
    reporter: Reporter, tmp_path: Path
) -> None:
    dump(tmp_path, 1, ["short", "the longest of all of them", "short too", "short still"], [0.0, 0.25, 0.0, 0.0])
    told(reporter, [tmp_path])
    kept = {text.sample: text for text in read(reporter.settings.spool, Text)}
    assert kept[1].completion == "the longest of all of them"
    assert (kept[1].prompt, kept[1].reward, kept[1].token_ids) == ("prompt 1", 0.25, ())


def test_counts_alone_are_sent_where_texts_are_off(reporter: Reporter, tmp_path: Path) -> None:
    dump(tmp_path, 1, GOOD)
    assert len(told(reporter, [tmp_path], texts=False)) == 1
    assert read(reporter.settings.spool, Text) == []


def test_a_dump_that_grows_is_read_when_it_rests(reporter: Reporter, tmp_path: Path) -> None:
    whole = dump(tmp_path / "rollouts", 1, GOOD)
    text = whole.read_text()
    whole.write_text(text[: len(text) // 2])
    tail = Tail([], reporter, dumps=Dumps([tmp_path]))
    assert tail.poll() == 0
    whole.write_text(text)
    assert tail.poll() == 0
    assert tail.poll() == 1
    assert tail.bad_count == 0
    dump(tmp_path / "rollouts", 2, GOOD)
    dump(tmp_path / "rollouts", 3, GOOD)
    assert tail.poll() == 1, "step 2 is whole, since there is a step 3"
    assert tail.finish() == 1


def test_a_dump_after_its_step_was_reported_is_left_out_and_counted(reporter: Reporter, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("step:1 - a/b:1\nstep:2 - a/b:1\nstep:3 - a/b:1\n")
    tail = Tail([log], reporter, dumps=Dumps([tmp_path], clock=lambda: 0.0))
    tail.poll()
    tail.finish()
    late = Dumps([tmp_path])
    late.passed = 3
    dump(tmp_path / "rollouts", 2, GOOD)
    assert list(late.look(ended=True)) == []
    assert late.late == 1
    assert late.waiting(None) == []
    assert [step.step for step in read(reporter.settings.spool, StepReport)] == [1, 2, 3]


def test_a_broken_dump_is_told_and_the_others_are_read(reporter: Reporter, tmp_path: Path) -> None:
    dump(tmp_path, 1, GOOD)
    broken = dump(tmp_path, 2, GOOD)
    broken.write_text(broken.read_text()[:-40])
    dump(tmp_path, 3, GOOD)
    tail = Tail([], reporter, dumps=Dumps([tmp_path]))
    assert tail.finish() == 2
    assert "2.jsonl" in tail.bad[0].reason


def test_an_evaluations_dumps_are_of_no_training_step(reporter: Reporter, tmp_path: Path) -> None:
    dump(tmp_path / "rollouts", 1, GOOD)
    dump(tmp_path / "val_rollouts", 1, ["other"] * 4)
    (step,) = told(reporter, [tmp_path])
    assert step.values["text.duplicate_rate"] == 0


def test_a_dump_is_no_log_and_a_log_is_no_dump(tmp_path: Path) -> None:
    made = dump(tmp_path, 1, GOOD)
    log = tmp_path / "run-123.jsonl"
    log.write_text('{"step": 1, "loss": 0.5}\n')
    assert is_dump(made)
    assert not is_dump(log)
    assert files([tmp_path]) == [log]


def test_a_tokenizer_that_is_not_there_is_told_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLVITALS_MODE", "offline")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    dump(tmp_path, 1, GOOD)
    assert main([str(tmp_path), "--once", "--tokenizer", str(tmp_path / "none.json")]) == 2
    assert "--tokenizer" in capsys.readouterr().err


Sent = Callable[..., int]


@pytest.fixture
def send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sent:
    monkeypatch.setenv("RLVITALS_DIR", str(tmp_path / "spool"))
    monkeypatch.setenv("RLVITALS_EXIT_FLUSH_S", "0.1")
    log = tmp_path / "run.log"
    log.write_text("step:1 - a/b:1\nstep:2 - a/b:1\n")
    return lambda url: main([str(log), "--once", "--url", url])


def test_once_succeeds_only_when_the_service_has_it_all(send: Sent, service: Service) -> None:
    assert send(service.url) == 0
    assert [step.step for step in service.steps()] == [1, 2]


@pytest.mark.parametrize("status", [401, 500])
def test_once_fails_where_the_service_refuses(
    send: Sent, service: Service, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    service.always = Reply(status=status)
    assert send(service.url) == 1
    said = capsys.readouterr().err
    assert "NOT ALL OF IT WAS TAKEN" in said
    assert str(status) in said
    assert "rlvitals sync" in said


def test_once_fails_where_nobody_listens(send: Sent, dead_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert send(dead_url) == 1
    assert "NOT ALL OF IT WAS TAKEN" in capsys.readouterr().err


def test_a_service_that_fails_once_and_then_takes_it_is_no_failure(send: Sent, service: Service) -> None:
    service.replies.append(Reply(status=503))
    assert send(service.url) == 0


@pytest.mark.parametrize(("score", "reward"), [(10**400, math.inf), (-(10**400), -math.inf)])
def test_a_reward_beyond_all_floats_is_an_infinity_and_ends_no_run(
    reporter: Reporter, tmp_path: Path, score: int, reward: float
) -> None:
    first = dump(tmp_path / "rollouts", 1, GOOD, (score, 1.0, 0.0, 1.0))
    assert list(read_dump(first).rewards["score"]) == [reward, 1.0, 0.0, 1.0]
    dump(tmp_path / "rollouts", 2, GOOD)
    paths = [tmp_path / "rollouts"]
    assert Tail(files(paths), reporter, dumps=Dumps(paths)).finish() == 2


def test_a_conversation_nested_without_end_costs_its_own_step(reporter: Reporter, tmp_path: Path) -> None:
    dump(tmp_path / "rollouts", 1, GOOD)
    endless = (
        '{"input": "p", "output": ' + '{"content": ' * 700 + '"x"' + "}" * 700 + ', "score": 1.0, "step": 2}\n'
    )
    (tmp_path / "rollouts" / "2.jsonl").write_text('{"input": "p", "output": "o", "score": 1.0}\n' + endless)
    dump(tmp_path / "rollouts", 3, GOOD)
    paths = [tmp_path / "rollouts"]
    assert Tail(files(paths), reporter, dumps=Dumps(paths)).finish() >= 2


def test_a_pipe_with_a_dumps_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "7.jsonl")
    assert not is_dump(tmp_path / "7.jsonl")
    assert not Dumps([tmp_path]).any()


def test_a_dump_and_its_folder_that_go_between_two_looks_are_no_end(reporter: Reporter, tmp_path: Path) -> None:
    path = dump(tmp_path / "rollouts", 1, GOOD)
    dumps = Dumps([tmp_path])
    tail = Tail([], reporter, dumps=dumps)
    assert dumps.any()
    path.unlink()
    assert not dumps._rests(path)
    path.parent.rmdir()
    assert tail.poll() == 0
    assert tail.finish() == 0
