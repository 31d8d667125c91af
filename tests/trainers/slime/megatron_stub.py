"""The parallel state of one rank without parallelism: slime imports Megatron, which has no CPU build."""

from __future__ import annotations

import sys
import types


def install() -> None:
    mpu = types.SimpleNamespace(
        get_context_parallel_world_size=lambda: 1,
        get_context_parallel_rank=lambda: 0,
        get_tensor_model_parallel_rank=lambda: 0,
        get_tensor_model_parallel_group=lambda: None,
        get_pipeline_model_parallel_rank=lambda: 0,
        get_pipeline_model_parallel_world_size=lambda: 1,
        get_data_parallel_rank=lambda with_context_parallel=False: 0,
        get_data_parallel_world_size=lambda with_context_parallel=False: 1,
        is_pipeline_last_stage=lambda ignore_virtual=False: True,
    )
    core = types.ModuleType("megatron.core")
    core.mpu = mpu  # type: ignore[attr-defined]
    sys.modules["megatron"] = types.ModuleType("megatron")
    sys.modules["megatron.core"] = core
