#!/usr/bin/env bash
# An agent with a calculator on GSM8K, trained by Agent-R1 (main branch, verl 0.7.0) on one GPU machine and watched by
# RL Vitals. One environment variable loads the plug-in (docs/integrations/agent-r1.md).
#
#   git clone https://github.com/AgentR1/Agent-R1 && cd Agent-R1
#   pip install "verl[vllm]==0.7.0" "rlvitals[probes]"
#   python3 examples/data_preprocess/gsm8k_tool.py --local_save_dir ~/data/gsm8k_tool
#   rlvitals serve &                          # or: export RLVITALS_URL=… RLVITALS_TOKEN=…
#   /path/to/agent_r1_gsm8k_tool.sh           # in the checkout of Agent-R1
#
# MODEL, DATA (a folder with train.parquet and test.parquet), GPUS and PYTHON may be set; further arguments are
# Agent-R1's own and win.
set -euo pipefail

PYTHON=${PYTHON:-python3}
MODEL=${MODEL:-Qwen/Qwen3-4B-Instruct-2507}
DATA=${DATA:-$HOME/data/gsm8k_tool}
GPUS=${GPUS:-2}

export VERL_USE_EXTERNAL_MODULES=rlvitals.integrations.verl

# calculate_log_probs: the sampler's log-probs, which tell what the policy wrote from what was appended to its answers
# use_kl_loss: a reference model from the start, so that the KL coefficient can be changed while the job runs
exec "$PYTHON" -m agent_r1.trainer.main_agent_ppo \
  algorithm.adv_estimator=grpo \
  data.train_files="$DATA/train.parquet" \
  data.val_files="$DATA/test.parquet" \
  data.train_batch_size=256 \
  data.max_prompt_length=4096 \
  data.max_response_length=2048 \
  data.filter_overlong_prompts=True \
  data.return_raw_chat=True \
  actor_rollout_ref.model.path="$MODEL" \
  actor_rollout_ref.model.use_remove_padding=True \
  actor_rollout_ref.model.enable_gradient_checkpointing=True \
  actor_rollout_ref.actor.optim.lr=1e-6 \
  actor_rollout_ref.actor.ppo_mini_batch_size=32 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \
  actor_rollout_ref.actor.use_kl_loss=True \
  actor_rollout_ref.actor.kl_loss_coef=0.001 \
  actor_rollout_ref.actor.kl_loss_type=low_var_kl \
  actor_rollout_ref.rollout.name=vllm \
  actor_rollout_ref.rollout.n=5 \
  actor_rollout_ref.rollout.tensor_model_parallel_size=1 \
  actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \
  actor_rollout_ref.rollout.prompt_length=4096 \
  actor_rollout_ref.rollout.response_length=2048 \
  actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \
  actor_rollout_ref.rollout.calculate_log_probs=True \
  actor_rollout_ref.rollout.agent.default_agent_flow=agent_env_loop \
  actor_rollout_ref.rollout.agent.max_steps=5 \
  actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=8 \
  actor_rollout_ref.ref.fsdp_config.param_offload=True \
  trainer.nnodes=1 \
  trainer.n_gpus_per_node="$GPUS" \
  trainer.logger='[console]' \
  trainer.project_name=agent_r1 \
  trainer.experiment_name=gsm8k_tool \
  trainer.total_epochs=15 \
  trainer.save_freq=50 \
  trainer.test_freq=5 \
  "$@"
