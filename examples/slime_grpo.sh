#!/usr/bin/env bash
# GRPO of a 0.5B model with slime on one node of 8 GPUs, watched by RL Vitals.
#
# Needs a slime checkout with its image's packages (SLIME), the model in Hugging Face's and in Megatron's format
# (MODEL, MODEL_DIST), a JSONL file of prompts (PROMPTS), and a service: `rlvitals serve` (RLVITALS_URL).
set -euo pipefail

SLIME=${SLIME:?the checkout of slime}
MODEL=${MODEL:?the model in Hugging Face format}
MODEL_DIST=${MODEL_DIST:?the model in Megatron format: slime/tools/convert_hf_to_torch_dist.py makes it}
PROMPTS=${PROMPTS:?a JSONL file with fields prompt and label}
OUTPUT=${OUTPUT:-output/slime-grpo}
MEGATRON=${MEGATRON:?the checkout of Megatron-LM}
# Ray's workers have the environment of `ray start`: there a token is on no command line and on no page of Ray's
export RLVITALS_URL=${RLVITALS_URL:-http://127.0.0.1:8642}

cd "$SLIME"
source scripts/models/qwen2.5-0.5B.sh  # MODEL_ARGS

WATCHED=rlvitals.integrations.slime
RUNTIME_ENV="{\"env_vars\": {\"PYTHONPATH\": \"$MEGATRON\", \"CUDA_DEVICE_MAX_CONNECTIONS\": \"1\"}}"

ray start --head --num-gpus 8 --disable-usage-stats
trap 'ray stop' EXIT

ray job submit --runtime-env-json="$RUNTIME_ENV" -- python3 train.py \
  "${MODEL_ARGS[@]}" \
  --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \
  --hf-checkpoint "$MODEL" --ref-load "$MODEL_DIST" --load "$OUTPUT" --save "$OUTPUT" --save-interval 20 \
  --prompt-data "$PROMPTS" --input-key prompt --label-key label --apply-chat-template --rollout-shuffle \
  --rm-type deepscaler \
  --num-rollout 200 --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 128 \
  --rollout-max-response-len 4096 --rollout-temperature 1.0 \
  --advantage-estimator grpo --use-kl-loss --kl-loss-coef 0.001 --kl-loss-type low_var_kl \
  --eps-clip 0.2 --eps-clip-high 0.28 \
  --optimizer adam --lr 1e-6 --lr-decay-style constant --weight-decay 0.1 \
  --use-dynamic-batch-size --max-tokens-per-gpu 9216 \
  --rollout-num-gpus-per-engine 1 --sglang-mem-fraction-static 0.7 \
  --custom-rollout-log-function-path $WATCHED.log_rollout \
  --custom-eval-rollout-log-function-path $WATCHED.log_eval_rollout \
  --custom-megatron-before-train-step-hook-path $WATCHED.before_train_step \
  --rollout-data-postprocess-path $WATCHED.postprocess \
  --custom-megatron-init-path $WATCHED.init
