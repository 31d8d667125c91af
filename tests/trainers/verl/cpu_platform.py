"""verl on a CPU: a platform, an inference engine and three shims, through verl's own registries.

Loaded by ``VERL_USE_EXTERNAL_MODULES=cpu_platform`` in each process of a job. Real are the driver, Ray's actors,
TransferQueue, the engine workers, loss, optimizer, checkpoints and the logger; stand-ins are the accelerator and
the engine that samples (`cpu_rollout`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from verl.plugin.platform import PlatformRegistry
from verl.plugin.platform.platform_base import PlatformBase


class Device:
    """What verl asks of ``torch.cuda``: memory is 0, everything else does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "memory" in name:
            return lambda *_, **__: 0 if name != "mem_get_info" else (0, 0)
        return getattr(torch.cpu, name, lambda *_, **__: None)

    def get_device_name(self, *_: Any) -> str:
        return "CPU"

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        return 1 << 30, 1 << 30


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    device_name = "cpu"
    vendor_name = "cpu"
    device_module = Device()

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        pass

    def synchronize(self, device_index: int | None = None) -> None:
        pass

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        pass

    def empty_cache(self) -> None:
        pass

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        pass

    def profiler_stop(self) -> None:
        pass

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> None:
        return None


def _one_backend(original: Any) -> Any:
    """verl names the device's backend beside gloo for the CPU: here they are one."""

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        doubled = isinstance(backend, str) and backend.count("cpu:gloo") > 1
        return original("cpu:gloo" if doubled else backend, *args, **kwargs)

    return init_process_group


def install() -> None:
    dist.init_process_group = _one_backend(dist.init_process_group)
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    torch.set_num_threads(1)


def register_rollout() -> None:
    """By name: the classes are imported where they are used."""
    from verl.workers.rollout import base, replica

    def load() -> Any:
        from cpu_rollout import CpuReplica

        return CpuReplica

    base._ROLLOUT_REGISTRY["cpu", "async"] = "cpu_rollout.CpuAdapter"
    replica.RolloutReplicaRegistry.register("cpu", load)


install()
os.environ.setdefault("VERL_PLATFORM", "cpu")
register_rollout()
