#!/usr/bin/env bash
# GRPO with OpenRLHF (0.10.2 or newer), watched by RL Vitals, on all GPUs of this machine:
#
#   pip install "openrlhf[vllm]" "rlvitals[probes]" && rlvitals serve &
#   bash examples/openrlhf_grpo.sh
#
# What follows on the command line is handed to OpenRLHF and overrides what stands here. The one line that is ours
# is the launcher; with WATCH= the same job runs without us.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
folder=${FOLDER:-openrlhf-grpo}
read -r -a watch <<<"${WATCH--m rlvitals.integrations.openrlhf.launch}"
mkdir -p "$folder"

if [ -z "${LAYOUT:-}" ]; then
  gpus=$(nvidia-smi --list-gpus | wc -l)
  LAYOUT="--actor.num_gpus_per_node $gpus --ref.num_gpus_per_node $gpus --vllm.num_engines $gpus
    --train.colocate_all --vllm.enable_sleep --ds.enable_sleep --vllm.gpu_memory_utilization 0.6"
fi
ALGORITHM=${ALGORITHM:---algo.advantage.estimator group_norm --algo.kl.use_loss --algo.kl.estimator k3}
read -r -d '' -a layout <<<"$LAYOUT" || true
read -r -d '' -a algorithm <<<"$ALGORITHM" || true

if [ -z "${PROMPTS:-}" ]; then
  PROMPTS=$folder/prompts.jsonl
  "$python" "$here/openrlhf_reward.py" >"$PROMPTS"
fi

exec "$python" "${watch[@]}" -m openrlhf.cli.train_ppo_ray \
  --actor.model_name_or_path "${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}" \
  --data.prompt_dataset "$PROMPTS" \
  --data.input_key input \
  --data.label_key label \
  --data.max_len 512 \
  --reward.remote_url "${REWARD:-$here/openrlhf_reward.py}" \
  "${layout[@]}" \
  "${algorithm[@]}" \
  --algo.kl.init_coef 0.01 \
  --rollout.batch_size 64 \
  --rollout.n_samples_per_prompt 8 \
  --rollout.micro_batch_size 8 \
  --rollout.max_new_tokens 256 \
  --train.batch_size 256 \
  --train.micro_batch_size 8 \
  --actor.adam.lr 1e-6 \
  --actor.entropy_coef 0 \
  --ckpt.path "$folder/checkpoints" \
  --ckpt.output_dir "$folder/model" \
  "$@"
