"""Output of trainers that build on TRL's, with what their users paste around it; the text is made up."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rlvitals.formats.log import Log
from rlvitals.formats.row import BadLine, Row, RowKind
from rlvitals.formats.steps import LoggedStep, StepMerger

SWIFT = """\
[INFO:swift] Setting args.lazy_tokenize: False
[INFO:swift] The logging file will be saved in: /out/v0/logging.jsonl
{'lora_rank': 8, 'lora_alpha': 32}
{'loss': 0.01, 'grad_norm': 0.5, 'learning_rate': 1e-06, 'memory(GiB)': 41.2, 'train_speed(iter/s)': 0.02, \
'completions/mean_length': 311.5, 'completions/clipped_ratio': 0.0, 'rewards/Accuracy/mean': 0.25, 'reward': 0.5, \
'reward_std': 0.1, 'frac_reward_zero_std': 0.5, 'kl': 0.0, 'epoch': 0.01, 'global_step/max_steps': '5/500', \
'percentage': '1.00%', 'elapsed_time': '1m 3s', 'remaining_time': '1h 44m'}
Train:   1%|          | 5/500 [01:03<1:44:00, 12.61s/it]
{'loss': nan, 'grad_norm': inf, 'reward': None, 'kl': -inf, 'global_step/max_steps': '10/500'}
{'loss': 0.1, 'grad_norm': , 'global_step/max_steps': '15/500'}
{'eval_loss': 0.2, 'eval_reward': 0.6, 'global_step/max_steps': '15/500'}
{'train_runtime': 100.0, 'train_loss': 0.1, 'global_step/max_steps': '500/500'}
"""
FACTORY = """\
[INFO|2026-01-02 03:04:05] llamafactory.hparams.parser:379 >> Process rank: 0, world size: 8, device: cuda:0
[WARNING|2026-01-02 03:04:06] llamafactory.extras.misc:154 >> Version checking has been disabled: 4 > 3
[INFO|2026-01-02 03:04:09] llamafactory.train.callbacks:143 >> \
{'loss': 0.4123, 'learning_rate': 5.0000e-06, 'epoch': 0.07, 'reward': 1.5, 'kl': nan}
{'loss': 0.4, 'grad_norm': 1.25, 'learning_rate': 5e-06, 'rewards/chosen': 0.1, 'epoch': 0.08}
[INFO|trainer.py:3503] 2026-01-02 03:04:10,123 >> Saving model checkpoint to out/checkpoint-20
{'loss': 0.3, 'reward': inf, 'kl':
[INFO|2026-01-02 03:04:11] llamafactory.train.callbacks:143 >> {'loss': None, 'reward': -inf, 'epoch': 0.09}
"""
OPEN_R1 = """\
2026-01-02 03:04:05 - INFO - __main__ - Training parameters GRPOConfig(learning_rate=1e-06, beta=0.04)
[INFO|trainer.py:2414] 2026-01-02 03:04:06,000 >> ***** Running training *****
[INFO|trainer.py:2415] 2026-01-02 03:04:06,000 >>   Num examples = 7,500
  0%|          | 0/1000 [00:00<?, ?it/s]\r  0%|          | 1/1000 [00:20<5:33:00, 20.00s/it]\r\
                                                \r{'loss': 0.0, 'grad_norm': 0.6, 'learning_rate': 1e-08, \
'num_tokens': 1234.0, 'completions/mean_length': 512.5, 'rewards/accuracy_reward/mean': 0.1, 'reward': 0.6, \
'reward_std': 0.3, 'kl': 0.0001, 'epoch': 0.0}
(WorkerDict pid=9) INFO 01-02 03:04:07 metrics.py:455] Avg prompt throughput: 100.1 tokens/s, GPU cache: 1.2%.
{'loss': 0.0, 'grad_norm': nan, 'reward': inf, 'kl': -inf, 'reward_std': None, 'epoch': 0.0}
W0102 03:04:08.000000 140 torch/distributed/run.py:793] *****************************************
{'loss': 0.1.2, 'reward': 0.1}
"""
UNSLOTH = """\
==((====))==  Unsloth - 2x faster free finetuning | Num GPUs used = 1
   \\\\   /|    Num examples = 7,473 | Num Epochs = 1 | Total steps = 250
O^O/ \\_/ \\    Batch size per device = 4 | Gradient accumulation steps = 1
-------------------- Question:
What is 3 + 4? {'think': 'no record'}
Answer:
7
Extracted:
7
Unsloth: Will smartly offload gradients to save VRAM!
{'loss': '0', 'grad_norm': '0.5', 'learning_rate': '5e-07', 'rewards/correctness': '0.5', 'reward': '0.5', \
'completion_length': '122', 'kl': 'nan', 'epoch': '0.01'}
{'loss': 'inf', 'grad_norm': '-inf', 'reward': 'None', 'kl': '0.1', 'epoch': '0.02'}
{'loss': 0.1, 'reward': 0.2, 'kl': ~}
Step\tTraining Loss\treward\tkl
3\t0.000000\t0.25\tnan
4\tNo log\tinf\t0.1
"""


def read(path: Path, text: str) -> tuple[list[Row], list[BadLine]]:
    path.write_text(text, encoding="utf-8", newline="")
    found = list(Log.of(path).rows())
    return [f for f in found if isinstance(f, Row)], [f for f in found if isinstance(f, BadLine)]


def steps(rows: list[Row]) -> list[LoggedStep]:
    merger = StepMerger()
    return [step for row in rows for step in merger.add(row)] + list(merger.end())


def test_ms_swift_says_its_step_as_a_fraction(tmp_path: Path) -> None:
    rows, bad = read(tmp_path / "swift.log", SWIFT)
    assert [(row.step, row.kind) for row in rows] == [
        (5, RowKind.TRAIN),
        (10, RowKind.TRAIN),
        (15, RowKind.EVAL),
        (500, RowKind.SUMMARY),
    ]
    assert rows[0].values["reward"] == 0.5
    second = rows[1]
    assert math.isnan(second.values["loss"])
    assert (second.values["grad_norm"], second.values["kl"]) == (math.inf, -math.inf)
    assert second.missing == ("reward",)
    assert [b.line for b in bad] == [7]
    given = [step for step in steps(rows) if not step.evaluation]
    assert [step.step for step in given] == [5, 10]
    assert given[0].values["reward.zero_std_groups"] == 0.5


def test_llama_factory_writes_dictionaries_behind_its_prefix(tmp_path: Path) -> None:
    rows, bad = read(tmp_path / "factory.log", FACTORY)
    assert [row.values["loss"] for row in rows if "loss" in row.values] == [0.4123, 0.4]
    assert math.isnan(rows[0].values["kl"])
    assert rows[0].values["learning_rate"] == 5e-6
    assert rows[2].values["reward"] == -math.inf
    assert rows[2].missing == ("loss",)
    assert [b.line for b in bad] == [6]


def test_llama_factorys_own_log_counts_current_steps(tmp_path: Path) -> None:
    lines = [
        {"current_steps": 5, "total_steps": 50, "loss": 0.5, "lr": 1e-6, "epoch": 0.1, "percentage": 10.0},
        {"current_steps": 10, "total_steps": 50, "loss": None, "reward": 0.1, "elapsed_time": "0:00:10"},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines) + '{"current_steps": 15, "loss": NaN}\nbroken\n'
    rows, bad = read(tmp_path / "trainer_log.jsonl", text)
    assert [row.step for row in rows] == [5, 10, 15]
    assert math.isnan(rows[2].values["loss"])
    assert rows[1].missing == ("loss",)
    assert [b.line for b in bad] == [4]


def test_open_r1_prints_behind_a_bar_between_two_loggers(tmp_path: Path) -> None:
    rows, bad = read(tmp_path / "open-r1.log", OPEN_R1)
    assert [row.values["loss"] for row in rows] == [0.0, 0.0]
    assert rows[0].values["rewards/accuracy_reward/mean"] == 0.1
    assert math.isnan(rows[1].values["grad_norm"])
    assert (rows[1].values["reward"], rows[1].values["kl"], rows[1].missing) == (
        math.inf,
        -math.inf,
        ("reward_std",),
    )
    assert [b.line for b in bad] == [8]


def test_unsloth_prints_samples_texts_for_numbers_and_a_table(tmp_path: Path) -> None:
    rows, bad = read(tmp_path / "unsloth.log", UNSLOTH)
    first, second, third, fourth = rows
    assert first.values["completion_length"] == 122
    assert math.isnan(first.values["kl"])
    assert (second.values["loss"], second.values["grad_norm"]) == (math.inf, -math.inf)
    assert "reward" not in second.values
    assert (third.step, third.values["reward"]) == (3, 0.25)
    assert math.isnan(third.values["kl"])
    assert (fourth.step, fourth.values) == (4, {"reward": math.inf, "kl": 0.1})
    assert [b.line for b in bad] == [13]


@pytest.mark.parametrize("text", [SWIFT, FACTORY, OPEN_R1, UNSLOTH])
def test_no_step_is_made_up(text: str, tmp_path: Path) -> None:
    rows, _ = read(tmp_path / "run.log", text)
    assert len(steps(rows)) <= 4
