"""A Ray cluster of this machine alone that counts eight GPUs nobody has; ends when its input is closed."""

from __future__ import annotations

import sys

import ray

context = ray.init(
    num_cpus=16, num_gpus=8, include_dashboard=False, object_store_memory=256 * 1024 * 1024, log_to_driver=False
)
print(context.address_info["gcs_address"], flush=True)
sys.stdin.read()
ray.shutdown()
