"""Weights in shards on a machine without GPUs: accelerate asks for one before it shards, so it is told of one."""

from __future__ import annotations

import os
from typing import Any

SHARDED = ("fsdp1", "fsdp2", "zero2", "zero3")
LAYER = "Qwen2DecoderLayer"


def settings(how: str) -> dict[str, Any]:
    """What a `TrainingArguments` is told, so that weights are sharded as ``how`` says; call `allow` before."""
    if how.startswith("fsdp"):
        config = {
            "version": int(how[-1]),
            "transformer_layer_cls_to_wrap": [LAYER],
            "use_orig_params": True,
            "sync_module_states": "false",
        }
        if how == "fsdp1":
            # whole, this torch's FSDP 1 dies in saving them on the CPU, with us and without
            config["state_dict_type"] = "SHARDED_STATE_DICT"
        return {"fsdp": "full_shard auto_wrap", "fsdp_config": config}
    if how.startswith("zero"):
        return {"deepspeed": _deepspeed(int(how[-1])), "use_cpu": False}
    return {}


def allow(how: str) -> None:
    """accelerate shards where it finds GPUs: it is told that these ranks have some, whose device is the CPU."""
    if how.startswith("zero"):
        os.environ["DS_ACCELERATOR"] = "cpu"
    if how not in SHARDED:
        return
    import torch
    from accelerate.state import PartialState
    from accelerate.utils import DistributedType

    def backend(*_: Any, **__: Any) -> tuple[str, DistributedType]:
        return "gloo", DistributedType.MULTI_GPU

    def set_device(state: Any) -> None:
        state.device = torch.device("cpu")

    PartialState._prepare_backend = backend
    PartialState.set_device = set_device


def _deepspeed(stage: int) -> dict[str, Any]:
    return {
        "zero_optimization": {"stage": stage},
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "zero_force_ds_cpu_optimizer": False,
        "zero_allow_untested_optimizer": True,
    }
