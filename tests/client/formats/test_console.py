"""Printed logs with all that surrounds records in real ones; the text is made up."""

from __future__ import annotations

import math

import pytest

from rlvitals.formats.console import Console
from rlvitals.formats.row import BadLine, Row, RowKind


def read(text: str) -> list[Row | BadLine]:
    console = Console()
    found = [item for number, line in enumerate(text.split("\n"), 1) for item in console.read(number, line)]
    return found + list(console.end())


def rows(text: str) -> list[Row]:
    return [item for item in read(text) if isinstance(item, Row)]


def only(text: str) -> Row:
    (row,) = rows(text)
    return row


def test_a_verl_line_is_read_through_ray_and_colours() -> None:
    row = only(
        "\x1b[36m(TaskRunner pid=71, ip=10.0.0.2)\x1b[0m step:7 - actor/pg_loss:-0.25 - "
        "actor/grad_norm:np.float64(nan) - critic/score/max:np.int32(2) - a@b:c/d:1e-07"
        " [repeated 2x across cluster]"
    )
    assert (row.step, row.source, row.line) == (7, "TaskRunner pid=71, ip=10.0.0.2", 1)
    assert math.isnan(row.values.pop("actor/grad_norm"))  # type: ignore[attr-defined]
    assert row.values == {"actor/pg_loss": -0.25, "critic/score/max": 2.0, "a@b:c/d": 1e-7}


def test_a_printed_tensor_has_a_colon_of_its_own() -> None:
    row = only(
        "step:3 - actor/kl_loss:tensor(nan, device='cuda:0') - a:b/c:tensor(-inf) - "
        "actor/lr:tensor(0.5, device='cuda:1', dtype=torch.float64) - actor/pg_loss:1.0"
    )
    assert math.isnan(row.values.pop("actor/kl_loss"))  # type: ignore[attr-defined]
    assert row.values == {"a:b/c": -math.inf, "actor/lr": 0.5, "actor/pg_loss": 1.0}


def test_the_four_kinds_of_numbers_are_four_kinds() -> None:
    row = only("{'loss': nan, 'kl': inf, 'reward': -inf, 'entropy': None, 'grad_norm': 0.0}")
    assert math.isnan(row.values["loss"])
    assert (row.values["kl"], row.values["reward"], row.values["grad_norm"]) == (math.inf, -math.inf, 0.0)
    assert row.missing == ("entropy",)


def test_a_wrapped_verl_line_is_one_record_and_the_next_one_is_not_swallowed() -> None:
    first, second = rows("step:1 - a/b:0.5 - c/d:\n2.5 - e/f:3\n - g/h:4\nsome talk\nstep:2 - a/b:0.6")
    assert first.values == {"a/b": 0.5, "c/d": 2.5, "e/f": 3.0, "g/h": 4.0}
    assert (second.step, second.line, second.values) == (2, 5, {"a/b": 0.6})


def test_interleaved_workers_do_not_mix() -> None:
    text = "(W pid=1) {'loss': 1.0,\n(W pid=2) {'loss': 2.0, 'reward': 5.0}\n(W pid=1)  'reward': 4.0}\n"
    assert [(row.values["loss"], row.values["reward"]) for row in rows(text)] == [(2.0, 5.0), (1.0, 4.0)]


def test_a_progress_bar_and_a_record_share_a_line() -> None:
    row = only("\r 10%|█   | 1/10 [00:03<00:27]\r{'loss': '0.0313', 'grad_norm': '1.5', 'epoch': '0.1'}\r 20%|██")
    assert row.values == {"loss": 0.0313, "grad_norm": 1.5, "epoch": 0.1}


@pytest.mark.parametrize(
    ("head", "step", "kind"),
    [
        ("[2026-01-02 03:04:05] train.py:88 - rollout 12: ", 12, RowKind.ROLLOUT),
        ("actor-step 4: ", 4, RowKind.TRAIN),
        ("perf 3: ", 3, RowKind.PERF),
        ("INFO 01-02 03:04:05 ppo.py:1] ✨ Global step 9: ", 9, RowKind.TRAIN),
    ],
)
def test_the_words_before_a_dictionary_say_which_step_it_is(head: str, step: int, kind: RowKind) -> None:
    row = only(head + "{'train/loss': 0.5, 'train/kl_loss': nan}")
    assert (row.step, row.kind) == (step, kind)


def test_a_dictionary_over_many_lines_is_one_record() -> None:
    row = only(
        "step 3: {'train/loss': 0.5,\n 'train/note': 'a } in a text',\n 'train/grad_norm': np.float64(2.0)}"
    )
    assert row.values == {"train/loss": 0.5, "train/grad_norm": 2.0}


def test_megatron_lines_give_their_numbers() -> None:
    row = only(
        " [2026-01-02 03:04:05] iteration       12/     100 | consumed samples:   96 | lm loss: 1.5E+00 | "
        "grad norm: nan | number of skipped iterations:   1 |"
    )
    assert row.step == 12
    assert row.values["lm loss"] == 1.5
    assert math.isnan(row.values["grad norm"])


def test_a_table_of_a_notebook_is_read_with_its_rule() -> None:
    found = rows("Step | Training Loss | kl\n--- | --- | ---\n1 | 0.5 | nan\n2 | No log | 0.1\n")
    assert [row.step for row in found] == [1, 2]
    assert math.isnan(found[0].values["kl"])
    assert found[1].values == {"kl": 0.1}


def test_lines_of_name_and_value_are_one_record_until_a_name_comes_again() -> None:
    found = rows("step: 1\ntrain/loss: 1,568,987.96\ngrad_norm: 2\nstep: 2\ntrain/loss: 3\n")
    assert [(row.step, row.values["train/loss"]) for row in found] == [(1, 1568987.96), (2, 3.0)]


def test_evaluations_and_summaries_are_no_training_steps() -> None:
    found = rows("{'eval_reward': 0.5, 'eval_loss': 0.1, 'epoch': 1.0}\n{'train_runtime': 3.0, 'train_loss': 0.2}")
    assert [row.kind for row in found] == [RowKind.EVAL, RowKind.SUMMARY]


@pytest.mark.parametrize(
    "junk",
    [
        "Loading checkpoint shards: 100%|##########| 4/4",
        "{'hidden_size': 16, 'num_layers': 2}",
        "args = {'lr': 1e-6, 'model': 'x'}",
        "WARN: rank 3 grad_norm is not finite: nan",
        "time: 12:30:01",
        "{}",
        "( ͡° ͜ʖ ͡°)",
        "}{",
        "step:x - a:1",
    ],
)
def test_what_is_no_record_is_passed_over(junk: str) -> None:
    assert read(junk) == []


def test_a_broken_record_is_told_with_its_line_and_the_rest_is_read() -> None:
    found = read(
        "{'loss': 1.0, 'reward' 2.0}\n{'loss': 1.5, 'reward': 2.5}\n"
        "step:4 - a/b:0.5 - c/d:what\n{'loss': 3.0, 'rewa"
    )
    assert [(item.line, type(item).__name__) for item in found] == [
        (1, "BadLine"),
        (2, "Row"),
        (3, "BadLine"),
        (3, "Row"),
        (4, "BadLine"),
    ]
    bad = found[2]
    assert isinstance(bad, BadLine)
    assert bad.text == "c/d:what"
    assert "name:value was expected" in bad.reason


def test_a_dictionary_that_never_closes_does_not_swallow_the_next_record() -> None:
    found = read("(W pid=1) {'loss': 1.0, 'x': '\n(W pid=1) {'loss': 2.0, 'reward': 1.0}")
    assert [type(item) for item in found] == [BadLine, Row]


def test_endless_lines_are_told_and_passed_over() -> None:
    (bad,) = read("{'loss': " + "1" * (1 << 20))
    assert isinstance(bad, BadLine)
    assert len(bad.text) <= 120


BOX = "╭───┬───╮\n│ reward/avg │ 5.0e-01 │ entropy/avg │ 1.5 │\n│ grad_norm │ nan │ │ │\n╰───┴───╯"
SECTIONS = {
    "bars": ("10:00:01 SUCCESS Step 7 | Time: 5.1s | Loss: -0.25 | MFU: 40% | Peak Mem.: 5/23 GiB (1%)", 7),
    "bars, tight": ("Step 7 | Loss:-0.25 Time:5.1 MFU:0.4", 7),
    "a bulleted section": (
        "===== Step 7/90 =====\nGenerating …\n\nResults:\n  • Loss: -0.25\n\nSpeed:\n  - Time: 5.1\n  - MFU: 0.4",
        7,
    ),
    "a learning iteration": ("   Learning iteration 7/90   \n\n  Loss: -0.25\n  Time: 5.1\n-----\n  MFU: 0.4", 7),
}


@pytest.mark.parametrize("case", SECTIONS)
def test_a_heading_says_the_step_of_the_numbers_below_it(case: str) -> None:
    text, step = SECTIONS[case]
    assert [(row.step, dict(row.values)) for row in rows(text)] == [
        (step, {"Loss": -0.25, "Time": 5.1, "MFU": 0.4})
    ]


def test_each_heading_begins_a_record_of_its_own() -> None:
    found = rows("Step 1/9\n- loss: 1\n- reward: 2\nStep 2/9\n- loss: nan\n- reward: inf\n")
    assert [(row.step, row.line) for row in found] == [(1, 2), (2, 5)]
    assert math.isnan(found[1].values["loss"])
    assert found[1].values["reward"] == math.inf


def test_a_box_of_names_and_numbers_is_a_record() -> None:
    row = only(f"Epoch 1/3 Step 3/9 Train step 3/27 done.\n{BOX}\n")
    assert (row.step, sorted(row.values)) == (3, ["entropy/avg", "grad_norm", "reward/avg"])
    assert math.isnan(row.values["grad_norm"])
    assert rows("| one | two |\n| 1 | 2 |\n") == []


@pytest.mark.parametrize(
    "text",
    [f"step:{'9' * 5000} - a/b:1", f"iteration {'9' * 5000}/ 1 | a: 1 |", f"step {'9' * 5000}: {{'loss': 1.0}}"],
)
def test_a_number_that_is_no_step_is_no_step_and_no_error(text: str) -> None:
    assert [row.step for row in rows(text)] == [None]


@pytest.mark.parametrize("text", [" " * 50_000 + "x", "(w pid=1) " + " " * 50_000 + "x"])
def test_endless_spaces_cost_no_time(text: str) -> None:
    assert rows(text) == []
