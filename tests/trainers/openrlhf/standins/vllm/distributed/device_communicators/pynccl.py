from __future__ import annotations

from typing import Any

from vllm.distributed.utils import StatelessProcessGroup


class PyNcclCommunicator:
    """The sender's side only: the engine receives by itself."""

    def __init__(self, group: StatelessProcessGroup, device: Any = None) -> None:
        self._group = group

    def broadcast(self, tensor: Any, src: int = 0, stream: Any = None) -> None:
        self._group.send(tensor)
