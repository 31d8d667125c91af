"""Whatever stands in a file or in settings, the checks come to an end with findings and never raise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from rlvitals.preflight.finding import Report
from rlvitals.preflight.inputs import Inputs, check_inputs
from rlvitals.preflight.table import table
from rlvitals.preflight.terminal import width

S, E = "<|im_start|>", "<|im_end|>"
ROWS: tuple[object, ...] = (
    {"prompt": f"{S}user\nQ{E}\n{S}assistant\n", "completion": "A" + E},
    {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"text": "y"}]}]},
    {"prompt": [{"role": None, "content": None}], "answer": 3},
    {"prompt": ["a", "b"], "x": {"y": [1, None]}},
    {"prompt": {"a": 1}},
    {"text": "<s>[INST] q [/INST] a</s>"},
    {"conversations": [{"from": "human", "value": "\ud800 \x1b[2J \u202e \x00"}]},
    {"": "", "messages": [1, {"role": 1, "content": 2}]},
    [1],
    "s",
    None,
)
SETTINGS: tuple[dict[str, object], ...] = (
    {"num_generations": 8, "beta": 0.1, "temperature": "hot"},
    {
        "num_generations": 0,
        "per_device_train_batch_size": 0,
        "epsilon": "a",
        "max_completion_length": -3,
        "beta": 1,
    },
    {"actor_rollout_ref": {"rollout": {"n": "x", "top_p": None}}},
    {"lr": [1, 2], "hf_checkpoint": 1, "use_kl_loss": "yes", "kl_loss_coef": "big", "global_batch_size": 0},
    {"init_kl_coef": 0.1, "kl_estimator": 3, "n_samples_per_prompt": True, "train_batch_size": -5},
)
ODD: tuple[object, ...] = (float("nan"), float("inf"), -1, 0, None, "", [], {}, True, 1e308, 10**400)
BYTES = b'\n\r",[]\\{}\xef\xbb\xbf\xff\xc3\x80\x00\x1b'
ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".jsonl.gz", ".parquet")


def damaged(random: Random) -> bytes:
    rows = [
        json.dumps(random.choice(ROWS), ensure_ascii=random.random() < 0.5) for _ in range(random.randint(1, 7))
    ]
    text = "\n".join(rows) if random.random() < 0.6 else f"[{','.join(rows)}]"
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(random.randint(0, 5)):
        at = random.randrange(len(data) + 1)
        if random.random() < 0.5:
            data[at : at + 1] = bytes([random.choice(BYTES)])
        elif random.random() < 0.5:
            del data[at : at + random.randint(1, 8)]
        else:
            data[at:at] = data[random.randrange(len(data) + 1) :][: random.randint(1, 20)]
    return bytes(data)


def settings(random: Random) -> Mapping[str, object]:
    chosen = dict(random.choice(SETTINGS))
    if random.random() < 0.5:
        chosen[random.choice(list(chosen))] = random.choice(ODD)
    return chosen


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_and_settings_end_in_findings(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    for _ in range(25):
        path = tmp_path / f"rows{random.choice(ENDINGS)}"
        path.write_bytes(damaged(random))
        inputs = Inputs(
            data=path,
            config=settings(random),
            versions={"trl": "1.0", "verl": "x"},
            count_tokens=lambda text: len(text) // 3,
            context=random.choice((None, 5, 1000)),
            template=random.choice(("", S)),
        )
        columns = random.randint(40, 160)
        text = table(Report.of(check_inputs(inputs)), columns)
        assert max(map(width, text.splitlines())) <= columns
        assert "\x1b" not in text
