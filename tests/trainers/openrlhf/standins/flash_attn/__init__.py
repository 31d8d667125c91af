"""Stands in for flash-attn where there is no GPU: the names that OpenRLHF imports, and a CPU in place of CUDA.

Written for these tests; attention itself is transformers' own eager one. Every process that computes imports this.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.distributed import device_mesh


class _Here(str):
    """The current device: a CPU, and "0" where it is written behind ``cuda:``."""

    def __format__(self, spec: str) -> str:
        return "0"


def _mesh(kind: str, *args: Any, **kwargs: Any) -> Any:
    return _init_device_mesh("cpu", *args, **kwargs)


def _nothing(*_: Any, **__: Any) -> None:
    return None


if not torch.cuda.is_available():
    _init_device_mesh = device_mesh.init_device_mesh
    device_mesh.init_device_mesh = _mesh
    begun = sys.modules.get("openrlhf.utils.deepspeed.deepspeed")
    if begun is not None:
        begun.init_device_mesh = _mesh
    torch.cuda.current_device = lambda: _Here("cpu")
    torch.cuda.set_device = torch.cuda.synchronize = torch.cuda.current_stream = _nothing
