"""Files of every format, synthesised; what a tracker really writes was tried by hand against its own library."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from rlvitals.formats.log import Format, Log, lines, sniff
from rlvitals.formats.row import BadLine, Row, RowKind


def read(path: Path, run: str | None = None) -> tuple[list[Row], list[BadLine]]:
    found = list(Log.of(path).rows(run))
    return [f for f in found if isinstance(f, Row)], [f for f in found if isinstance(f, BadLine)]


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_a_trainer_state_gives_its_history(tmp_path: Path) -> None:
    history = [
        {"step": 1, "loss": math.nan, "grad_norm": math.inf, "epoch": 0.1},
        {"step": 2, "loss": 0.5, "kl": None},
        {"step": 2, "eval_reward": 1.0},
        {"step": 2, "train_runtime": 3.0},
        "odd",
    ]
    path = write(tmp_path / "trainer_state.json", json.dumps({"epoch": 1.0, "log_history": history}, indent=2))
    assert sniff(path) is Format.JSON
    found, bad = read(path)
    assert [row.kind for row in found] == [RowKind.TRAIN, RowKind.TRAIN, RowKind.EVAL, RowKind.SUMMARY]
    assert math.isnan(found[0].values["loss"])
    assert found[0].values["grad_norm"] == math.inf
    assert found[1].missing == ("kl",)
    assert [b.line for b in bad] == [5]


def test_verls_file_logger_writes_null_for_what_is_not_finite(tmp_path: Path) -> None:
    path = write(
        tmp_path / "run.jsonl", '{"step": 3, "data": {"actor/grad_norm": null, "actor/lr": 1e-6}}\nnonsense\n'
    )
    (row,), (bad,) = read(path)
    assert row.step == 3
    assert math.isnan(row.values["actor/grad_norm"])
    assert bad.line == 2


def test_other_json_lines_write_null_for_what_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", '{"global_step": 3, "loss": null, "m": {"a": -Infinity}, "s": "0.5"}\n')
    (row,), _ = read(path)
    assert (row.step, row.missing) == (3, ("loss",))
    assert row.values == {"m/a": -math.inf, "s": 0.5}


def test_a_csv_of_columns_and_a_csv_of_points_are_both_read(tmp_path: Path) -> None:
    wide = write(tmp_path / "a.csv", "\ufeffstep,loss,kl\n1,0.5,nan\n2,,0.1\nbroken\n")
    rows, bad = read(wide)
    assert [(row.step, row.missing) for row in rows] == [(1, ()), (2, ("loss",))]
    assert [b.line for b in bad] == [4]
    (point,), _ = read(write(tmp_path / "b.csv", "run,metric,step,value\nx,train/loss,7,inf\n"))
    assert (point.step, point.values) == (7, {"train/loss": math.inf})


def frame(body: bytes) -> bytes:
    return struct.pack("<QI", len(body), 0) + body + b"\0\0\0\0"


def field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2, len(body)]) + body


def scalar(step: int, tag: str, value: float) -> bytes:
    inner = field(1, tag.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", value)
    return frame(b"\x09" + struct.pack("<d", 1.0) + bytes([2 << 3, step]) + field(5, field(1, inner)))


@pytest.mark.parametrize("cut", [0, 5, 20])
def test_tensorboard_events_keep_the_four_kinds_and_end_where_they_are_cut(tmp_path: Path, cut: int) -> None:
    values = [0.5, math.nan, math.inf, -math.inf]
    data = frame(b"\x09" + struct.pack("<d", 1.0) + field(3, b"brain.Event:2"))
    data += b"".join(scalar(step, "train/loss", value) for step, value in enumerate(values))
    path = write(tmp_path / "events.out.tfevents.1.host", data[: len(data) - cut])
    rows, bad = read(path)
    assert not bad
    assert [repr(row.values["train/loss"]) for row in rows] == [repr(v) for v in values[: 4 - (cut > 0)]]
    assert [row.step for row in rows] == list(range(len(rows)))


def item(name: str, text: str) -> bytes:
    return field(1, field(2, name.encode()) + b"\x82\x01" + bytes([len(text)]) + text.encode())


def framed(log: bytes, record: bytes) -> bytes:
    """``log`` with a record behind it, cut where a block of 32 KiB ends."""
    first = True
    while record or first:
        room = (1 << 15) - len(log) % (1 << 15)
        if room < 7:
            log += b"\0" * room
            continue
        part, record = record[: room - 7], record[room - 7 :]
        kind = (2 if record else 1) if first else (3 if record else 4)
        log, first = log + struct.pack("<IHB", 0, len(part), kind) + part, False
    return log


def test_an_offline_file_of_wandb_is_read_over_block_borders(tmp_path: Path) -> None:
    data = b":W&B\x00\x00\x00"
    spelt = {"0.5": "0.5", "NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    for step in range(2000):
        history = item("train/loss", list(spelt)[step % 4]) + item("_step", str(step)) + item("note", '"x"')
        data = framed(data, b"\x12" + bytes([len(history)]) + history)
    rows, bad = read(write(tmp_path / "run-x.wandb", data))
    assert not bad
    assert [row.step for row in rows] == list(range(2000))
    assert [repr(row.values["train/loss"]) for row in rows] == [*spelt.values()] * 500


def mlflow(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan)")
    points = [
        ("loss", 0.5, 1, "a", 0, 0),
        ("loss", 0, 2, "a", 1, 1),
        ("kl", 0.1, 2, "a", 1, 0),
        ("loss", 9, 0, "b", 0, 0),
    ]
    database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", points)


def trackio(database: sqlite3.Connection) -> None:
    database.execute("CREATE TABLE metrics (id, timestamp, run_name, step, metrics)")
    texts = [
        (1, "1", "a", 0, '{"loss": 0.5}'),
        (2, "2", "a", 1, '{"loss": NaN, "kl": 0.1}'),
        (3, "0", "b", 0, "{}"),
    ]
    database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?)", texts)


@pytest.mark.parametrize("fill", [mlflow, trackio])
def test_a_trackers_database_gives_the_newest_run_or_the_one_that_is_named(
    tmp_path: Path, fill: Callable[[sqlite3.Connection], None]
) -> None:
    path = tmp_path / "tracker.db"
    with closing(sqlite3.connect(path)) as database:
        fill(database)
        database.commit()
    rows, _ = read(path)
    assert [row.step for row in rows] == [0, 1]
    assert math.isnan(rows[1].values["loss"])
    assert rows[1].values["kl"] == 0.1
    with pytest.raises(ValueError, match="no run called 'c'"):
        read(path, "c")


def test_a_packed_console_log_is_read_with_its_odd_bytes(tmp_path: Path) -> None:
    path = tmp_path / "log.txt.gz"
    path.write_bytes(gzip.compress(b"\xff\xfe junk\nstep:1 - a/b:0.5\nstep:2 - a/b:nan\n"))
    assert sniff(path) is Format.CONSOLE
    rows, bad = read(path)
    assert not bad
    assert [row.step for row in rows] == [1, 2]


def test_a_line_without_end_is_cut_and_the_next_one_has_its_own_number(tmp_path: Path) -> None:
    path = write(tmp_path / "log.txt", b"x" * 3_000_000 + b"\nstep:1 - a/b:0.5\n")
    with path.open("rb") as file:
        found = [(number, len(text)) for number, text in lines(file)]
    assert found == [(1, (1 << 20) + 1), (2, 17)]
    rows, bad = read(path)
    assert [row.line for row in rows] == [2]
    assert [b.line for b in bad] == [1]


@pytest.mark.parametrize("junk", [b"", b"\0" * 100, b"[[[[[[", b'{"a": ', bytes(range(256)) * 10])
def test_junk_is_no_error_of_ours(tmp_path: Path, junk: bytes) -> None:
    path = write(tmp_path / "x", junk)
    with contextlib.suppress(ValueError):
        rows, _ = read(path)
        assert rows == []


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_log_of_powershell_is_read_as_any_other(tmp_path: Path, encoding: str, packed: bool) -> None:
    text = "step:1 - a/b:0.5 - näme/c:1\r\nstep:2 - a/b:nan\r\n" * 1000
    data = text.encode(encoding)
    path = write(tmp_path / "log", gzip.compress(data) if packed else data)
    found, bad = read(path)
    assert not bad
    assert len(found) == 2000
    assert found[0].values == {"a/b": 0.5, "näme/c": 1.0}


def test_objects_that_follow_one_another_are_many_records(tmp_path: Path) -> None:
    one = json.dumps({"loss": 0.5, "reward": 1.0}, indent=2)
    path = write(tmp_path / "log", f"{one}\n{one}\n")
    assert sniff(path) is Format.CONSOLE
    assert len(read(path)[0]) == 2


def test_a_csv_by_semicolons_may_have_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "step;loss;reward\n1;0,512;1.5\n2;nan;-3\n")
    assert sniff(path) is Format.CSV
    first, second = read(path)[0]
    assert (first.step, first.values) == (1, {"loss": 0.512, "reward": 1.5})
    assert math.isnan(second.values["loss"])


def test_numbers_beyond_all_steps_are_none(tmp_path: Path) -> None:
    steps = [1, 2.0, 1e300, -1, 2**63, "3"]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps({"step": s, "loss": 1.0}) + "\n" for s in steps))
    assert [row.step for row in read(path)[0]] == [1, 2, None, None, None, 3]


def test_a_pipe_a_folder_and_a_device_are_no_log_and_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    for path in (tmp_path / "pipe.log", tmp_path, Path("/dev/zero")):
        with pytest.raises(ValueError, match="a log file was expected"):
            Log.of(path)
    with pytest.raises(FileNotFoundError):
        Log.of(tmp_path / "absent.log")


def test_a_csv_whose_header_cannot_be_read_says_what_was_expected(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", "step,lo\rss\n1,0.5\n")
    with pytest.raises(ValueError, match="a header line was expected"):
        list(Log.of(path, Format.CSV).rows())
