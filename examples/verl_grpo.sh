#!/usr/bin/env bash
# GRPO with verl on one GPU machine, watched by RL Vitals. There is no line of RL Vitals below: from verl 0.9 on,
# `pip install "rlvitals[probes]"` in the job's environment is all (docs/integrations/verl.md).
#
#   pip install "verl[vllm]>=0.9" "rlvitals[probes]"
#   rlvitals serve &                          # or: export RLVITALS_URL=… RLVITALS_TOKEN=…
#   examples/verl_grpo.sh                     # Qwen2.5-0.5B-Instruct on GSM8K
#
# MODEL, DATA (a folder with train.parquet and test.parquet), GPUS and PYTHON may be set; further arguments are
# verl's own and win. On a CPU the tests run this very script (tests/trainers/verl/job.py has what they add).
set -euo pipefail

PYTHON=${PYTHON:-python3}
MODEL=${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}
DATA=${DATA:-$HOME/data/gsm8k}
GPUS=${GPUS:-1}

if [ ! -e "$DATA/train.parquet" ]; then
  "$PYTHON" - "$DATA" <<'PREPARE'
import pathlib, re, sys
from datasets import load_dataset

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def row(example, index, split):
    answer = re.search(r"#### (\-?[0-9\.\,]+)", example["answer"]).group(1).replace(",", "")
    question = example["question"] + ' Let\'s think step by step and output the final answer after "####".'
    return {
        "data_source": "openai/gsm8k",
        "prompt": [{"role": "user", "content": question}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": answer},
        "extra_info": {"split": split, "index": index},
    }


for split in ("train", "test"):
    rows = load_dataset("openai/gsm8k", "main", split=split)
    rows.map(row, with_indices=True, fn_kwargs={"split": split}, remove_columns=rows.column_names).to_parquet(
        str(folder / f"{split}.parquet")
    )
PREPARE
fi

# calculate_log_probs: the sampler's log-probs, to see where it and the trainer differ
# use_kl_loss: a reference model from the start, so that the KL coefficient can be changed while the job runs
exec "$PYTHON" -m verl.trainer.main_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files="$DATA/train.parquet" \
  data.val_files="$DATA/test.parquet" \
  data.train_batch_size=128 \
  data.max_prompt_length=512 \
  data.max_response_length=1024 \
  actor_rollout_ref.model.path="$MODEL" \
  actor_rollout_ref.actor.optim.lr=1e-6 \
  actor_rollout_ref.actor.ppo_mini_batch_size=64 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.001 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=8 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.5 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=16 \
  actor_rollout_ref.rollout.calculate_log_probs=True \
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=16 \
  trainer.nnodes=1 \
  trainer.n_gpus_per_node="$GPUS" \
  trainer.logger='[console]' \
  trainer.project_name=gsm8k \
  trainer.experiment_name=grpo \
  trainer.total_epochs=3 \
  trainer.save_freq=50 \
  trainer.test_freq=10 \
  "$@"
