"""What trackers leave on a disk, written as MLflow 3.17 and Trackio 0.43 write it."""

from __future__ import annotations

import math
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rlvitals.formats.log import Format, Log
from rlvitals.formats.row import BadLine, Row


def read(path: Path, run: str | None = None) -> tuple[list[Row], list[BadLine]]:
    found = list(Log.of(path).rows(run))
    return [f for f in found if isinstance(f, Row)], [f for f in found if isinstance(f, BadLine)]


def mlflow_run(store: Path, name: str, metrics: dict[str, str], at: int = 1) -> Path:
    folder = store / "153726870162208522" / f"id-of-{name}"
    for metric, text in metrics.items():
        path = folder / "metrics" / metric
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "tags").mkdir(parents=True)
    (folder / "tags" / "mlflow.runName").write_text(name)
    (folder / "meta.yaml").write_text(f"run_name: {name}\nstatus: 3\n")
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (at, at))
    return folder


POINTS = {
    "actor/grad_norm": "1795998071058 0.5 1\n1795998071064 nan 2\n1795998071086 inf 3\n1795998071092 -inf 4\n",
    "critic/score/mean": "1795998071058 0.1 1\ndamaged\n1795998071086 0.3 3\n1795998071087 0.4 3\n1795 0.5 x\n",
    "val/acc": "1795998071093 0.4 2\n",
}


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_file_store_is_read_from_a_run_an_experiment_or_all_of_them(depth: int, tmp_path: Path) -> None:
    folder = mlflow_run(tmp_path / "mlruns", "r", POINTS)
    place = (folder, folder.parent, folder.parent.parent)[depth]
    assert Log.of(place).format is Format.MLFLOW
    rows, bad = read(place)
    assert [row.step for row in rows] == [1, 2, 3, 4]
    norms = [row.values["actor/grad_norm"] for row in rows]
    assert (norms[0], norms[2], norms[3]) == (0.5, math.inf, -math.inf)
    assert math.isnan(norms[1])
    assert "critic/score/mean" not in rows[1].values
    assert rows[2].values["critic/score/mean"] == 0.4
    assert [b.line for b in bad] == [2, 5]
    assert "of critic/score/mean were expected" in bad[0].reason


def test_a_run_of_a_file_store_is_chosen_by_name_or_is_the_newest(tmp_path: Path) -> None:
    mlflow_run(tmp_path, "old", {"loss": "1 0.25 1\n"}, at=1)
    mlflow_run(tmp_path, "new", {"loss": "1 0.5 1\n"}, at=2)
    assert read(tmp_path)[0][0].values == {"loss": 0.5}
    assert read(tmp_path, "old")[0][0].values == {"loss": 0.25}
    assert read(tmp_path, "id-of-old")[0][0].values == {"loss": 0.25}
    with pytest.raises(ValueError, match="called 'none'"):
        read(tmp_path, "none")


def test_points_without_steps_are_counted_in_the_order_of_their_writing(tmp_path: Path) -> None:
    folder = mlflow_run(tmp_path, "r", {"loss": "1 0.5 0\n2 0.25 0\n", "reward": "1 1 0\n2 2 0\n"})
    rows, _ = read(folder)
    assert [(row.step, dict(row.values)) for row in rows] == [
        (None, {"loss": 0.5, "reward": 1.0}),
        (None, {"loss": 0.25, "reward": 2.0}),
    ]


def test_steps_that_were_written_out_of_order_are_put_into_order(tmp_path: Path) -> None:
    folder = mlflow_run(tmp_path, "r", {"loss": "3 0.3 3\n1 0.1 1\n2 0.2 2\n"})
    assert [(row.step, row.values["loss"]) for row in read(folder)[0]] == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_a_folder_without_a_run_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "metrics").mkdir()
    with pytest.raises(ValueError, match="or a folder with a run of MLflow"):
        Log.of(tmp_path)


def test_mlflows_database_spells_infinity_as_the_largest_double(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE metrics (key, value FLOAT, timestamp, run_uuid, step, is_nan)")
        values = [(0.5, 0), (0.0, 1), (sys.float_info.max, 0), (-sys.float_info.max, 0)]
        for step, (value, is_nan) in enumerate(values, 1):
            made.execute("INSERT INTO metrics VALUES ('loss', ?, 1, 'r', ?, ?)", (value, step, is_nan))
        made.commit()
    told = [row.values["loss"] for row in read(path)[0]]
    assert (told[0], told[2], told[3]) == (0.5, math.inf, -math.inf)
    assert math.isnan(told[1])


def test_trackio_spells_what_is_not_finite_as_words(tmp_path: Path) -> None:
    path = tmp_path / "grpo.db"
    lines = [
        '{"loss":0.5,"note":"hi"}',
        '{"loss":"NaN","nested":{"a":1.0}}',
        '{"loss":"Infinity"}',
        "{",
        '{"loss":null}',
    ]
    with closing(sqlite3.connect(path)) as made:
        made.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, run_id, timestamp, run_name, step, metrics)")
        for step, text in enumerate(lines):
            made.execute(
                "INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, 'run one', ?, ?)",
                (f"2026-01-0{step + 1}", step, text.encode()),
            )
        made.commit()
    rows, bad = read(path)
    assert [row.step for row in rows] == [0, 1, 2, 4]
    assert math.isnan(rows[1].values["loss"])
    assert rows[1].values["nested/a"] == 1.0
    assert rows[2].values["loss"] == math.inf
    assert rows[3].missing == ("loss",)
    assert [b.line for b in bad] == [4]


def test_a_trackers_parquet_is_one_runs_rows(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist(
        [
            {"id": 1, "run_name": "other", "timestamp": "t", "step": 7, "loss": 9.0},
            {"id": 2, "run_name": "mine", "timestamp": "t", "step": 1, "loss": 0.5},
            {"id": 3, "run_name": "mine", "timestamp": "t", "step": 2, "loss": math.nan},
            {"id": 4, "run_name": "mine", "timestamp": "t", "step": 3, "loss": math.inf},
            {"id": 5, "run_name": "mine", "timestamp": "t", "step": 4, "loss": None},
        ]
    )
    path = tmp_path / "grpo.parquet"
    parquet.write_table(table, path)
    assert Log.of(path).format is Format.PARQUET
    rows, _ = read(path)
    assert [row.step for row in rows] == [1, 2, 3, 4]
    assert math.isnan(rows[1].values["loss"])
    assert rows[2].values == {"loss": math.inf}
    assert rows[3].missing == ("loss",)
    assert [row.step for row in read(path, "other")[0]] == [7]
    with pytest.raises(ValueError, match="no run called 'none'"):
        read(path, "none")
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="a sound Parquet file was expected"):
        read(path)
