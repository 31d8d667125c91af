"""slime itself, as far as it runs without a GPU: its plug-in contracts, its loss, its samples, its group of ranks.

No training of slime's runs on a CPU: Megatron and sglang have no build for it. What is a stand-in here is the
parallel state of Megatron (one rank without parallelism).
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from rlvitals.integrations.slime import arguments
from tests.client.integrations.pair import run_pair
from tests.trainers.slime.source import checkout

DEADLINE_S = 300.0
FOLDER = Path(__file__).parent / "slime"
EXAMPLE = Path(__file__).parents[2] / "examples" / "slime_grpo.sh"
NOT_SLIMES = {
    *(
        "--swiglu",
        "--num-layers",
        "--hidden-size",
        "--ffn-hidden-size",
        "--num-attention-heads",
        "--normalization",
    ),
    *("--use-rotary-position-embeddings", "--disable-bias-linear", "--add-qkv-bias", "--norm-epsilon"),
    *("--rotary-base", "--group-query-attention", "--num-query-groups", "--vocab-size", "--optimizer"),
    *("--lr-decay-style", "--weight-decay", "--sglang-mem-fraction-static"),
}
"""What the example hands to Megatron and sglang, whose parsers need their packages."""
RAY = """#!/bin/sh
[ "$1" = job ] && printf '%s\\n' "$@"
[ "$1" = start ] && echo "token: $RLVITALS_TOKEN" >&2
exit 0
"""
CONTRACTS = "plugin_contracts.test_plugin_runtime_hook_contracts"


@pytest.fixture(scope="module")
def slime() -> Path:
    return checkout()


@pytest.fixture(scope="module")
def python(slime: Path, environment: Callable[[str], Path]) -> Path:
    return environment("slime")


def run(python: Path, slime: Path, arguments: Iterable[str], folder: Path, **env: str) -> str:
    """Runs in slime's checkout; gives what was printed."""
    told = {
        **os.environ, "SLIME_CHECKOUT": str(slime),
        "RLVITALS_MODE": "offline", "RLVITALS_DIR": str(folder / "spool"),
        "RLVITALS_RUN_ID": "r", "RLVITALS_ATTEMPT": "a1", "RLVITALS_RAISE": "1", "TORCHDYNAMO_DISABLE": "1", **env,
    }  # fmt: skip
    command = [str(python), *arguments]
    done = subprocess.run(
        command, cwd=slime, env=told, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def told(python: Path, slime: Path, what: str, folder: Path) -> dict[str, Any]:
    out = run(python, slime, [str(FOLDER / "job.py"), what], folder)
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def losses(python: Path, slime: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return told(python, slime, "loss", tmp_path_factory.mktemp("losses"))


def test_slimes_own_plugin_contracts_hold_for_our_functions(python: Path, slime: Path, tmp_path: Path) -> None:
    """With the contracts' own references as the user's functions, which ours call."""
    house = Path(arguments.__file__).parents[3]
    out = run(
        python,
        slime,
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/plugin_contracts"],
        tmp_path,
        PYTHONPATH=f"{house}{os.pathsep}tests",
        SLIME_CONTRACT_CUSTOM_ROLLOUT_LOG_FUNCTION_PATH="rlvitals.integrations.slime.log_rollout",
        SLIME_CONTRACT_CUSTOM_EVAL_ROLLOUT_LOG_FUNCTION_PATH="rlvitals.integrations.slime.log_eval_rollout",
        SLIME_CONTRACT_ROLLOUT_DATA_POSTPROCESS_PATH="rlvitals.integrations.slime.postprocess",
        RLVITALS_SLIME_LOG_FUNCTION=f"{CONTRACTS}.reference_custom_rollout_log",
        RLVITALS_SLIME_EVAL_LOG_FUNCTION=f"{CONTRACTS}.reference_custom_eval_rollout_log",
        RLVITALS_SLIME_POSTPROCESS=f"{CONTRACTS}.reference_rollout_data_postprocess",
    )
    assert re.search(r" [1-9]\d* passed(?!.*skipped)", out.strip().splitlines()[-1])


def test_slimes_own_loss_is_seen_as_it_is_and_left_bit_for_bit_the_same(losses: dict[str, Any]) -> None:
    found = losses
    for name in ("k1", "k2", "k3", "low_var_kl"):
        assert found[name]["same"], "loss and gradient, bit for bit"
        values, logged = found[name]["step"]["values"], found[name]["logged"]
        assert values["policy.loss_tokens"] == 12
        assert values["policy.loss"] == pytest.approx(logged["loss"] / 2, rel=1e-5)
        assert values["kl.coef"] == 0.1
        assert math.isfinite(values["ratio.max"])
        assert values["ratio.rollout_max"] > 1.0
        assert 0 <= found[name]["step"]["tokens"]["ratio.max"] < 32
        assert values["policy.entropy"] == pytest.approx(3.0, abs=0.5)
        told_of = values.keys() | found[name]["step"]["missing"].keys()
        assert told_of >= arguments.TRAIN_TELLS


def test_the_gradient_that_slime_makes_nan_is_told_before_it_does(losses: dict[str, Any]) -> None:
    found = losses
    assert found["poisoned"] == {"finite_loss": True, "nan_gradient": True}
    assert found["ahead"]["values"]["kl.nan_gradient_tokens"] == 1
    assert found["ahead"]["step"] == 6
    assert found["reused"]["missing"]["ratio.max"] == arguments.REUSED


def test_slimes_own_samples_are_read_through_its_own_call(python: Path, slime: Path, tmp_path: Path) -> None:
    found = told(python, slime, "samples", tmp_path)
    values = found["step"]["values"]
    assert found["step"]["step"] == 4
    assert values["length.truncation_rate"] == 0.25
    assert values["length.mean"] == 2.5
    assert values["reward.zero_std_groups"] == 0.5
    assert values["rollout/own"] == 1.5
    assert found["texts"] > 0


@pytest.mark.parametrize("main", [0, 1])
def test_a_coefficient_reaches_both_ranks_in_slimes_own_group(
    python: Path, slime: Path, tmp_path: Path, main: int
) -> None:
    """Also where the rank that logs is not the first (pipeline stages), and after slime remade its group."""
    env = {"SLIME_CHECKOUT": str(slime), "MAIN_RANK": str(main), "RLVITALS_RUN_ID": "r", "RLVITALS_ATTEMPT": "a1"}
    ranks = run_pair("tests.trainers.slime.rank", tmp_path, deadline_s=DEADLINE_S, python=python, env=env)
    assert [rank["coefficients"] for rank in ranks] == [[0.01, 0.05, 0.05]] * 2
    (outcome,) = ranks[main]["outcomes"]
    assert (outcome["before"], outcome["after"]) == (0.01, 0.05)
    assert ranks[1 - main]["outcomes"] == []
    assert ranks[1 - main]["steps"] == []
    assert [step["policy.loss_tokens"] for step in ranks[main]["steps"]] == [8, 8], "of both ranks"
    assert [rank["stopped"] for rank in ranks] == [True, True]


def test_the_example_is_a_job_that_slime_understands_and_tells_its_token_to_nobody(
    python: Path, slime: Path, tmp_path: Path
) -> None:
    shim = tmp_path / "ray"
    shim.write_text(RAY)
    shim.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLIME": str(slime),
        "RLVITALS_TOKEN": "secret",
    }
    env |= dict.fromkeys(("MODEL", "MODEL_DIST", "PROMPTS", "MEGATRON"), str(tmp_path / "some"))
    told = subprocess.run([str(EXAMPLE)], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stderr[-2000:]
    words = told.stdout.splitlines()
    (runtime,) = [word for word in words if word.startswith("--runtime-env-json=")]
    assert json.loads(runtime.partition("=")[2])["env_vars"]["PYTHONPATH"] == str(tmp_path / "some")
    assert "secret" not in told.stdout
    assert "token: secret" in told.stderr
    out = run(python, slime, [str(FOLDER / "flags.py"), *words[words.index("train.py") + 1 :]], tmp_path)
    found = json.loads(out.strip().splitlines()[-1])
    names = ("log_rollout", "log_eval_rollout", "before_train_step", "postprocess", "init")
    assert found["ours"] == [f"rlvitals.integrations.slime.flags.{name}" for name in names]
    assert set(found["unknown"]) <= NOT_SLIMES


def test_processes_of_one_ray_job_agree_on_the_run(python: Path, slime: Path, tmp_path: Path) -> None:
    out = run(python, slime, [str(FOLDER / "agree.py")], tmp_path, RLVITALS_RUN_ID="", RLVITALS_ATTEMPT="")
    told = json.loads(out.strip().splitlines()[-1])
    assert told[0] == told[1] == told[2]
    assert told[0][2] is True
