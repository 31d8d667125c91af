"""Network namespaces, each with one wire to us that can be cut: nothing goes through, and nobody is told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

NAMES = Path("/run/netns")
BLACK_HOLE_METRIC = "4000"


class Namespace:
    """A machine's network: ``here`` is our address on its wire, ``there`` its own. Raises OSError where the
    system allows none, `subprocess.CalledProcessError` where it refuses part of it."""

    def __init__(self, number: int) -> None:
        mark = os.getpid() % 100_000
        net = f"100.{64 + os.getpid() % 64}.{number}"
        self.name, self._end = f"rlv{mark}n{number}", f"rlv{mark}h{number}"
        self.here, self.there, self._net = f"{net}.1", f"{net}.2", f"{net}.0/30"
        inner = f"rlv{mark}c{number}"
        try:
            _ip("netns", "add", self.name)
            _ip("link", "add", self._end, "type", "veth", "peer", "name", inner)
            _ip("link", "set", inner, "netns", self.name)
            _ip("addr", "add", f"{self.here}/30", "dev", self._end)
            _ip("link", "set", self._end, "up")
            # what is sent while the wire is cut must not leave by another way
            _ip("route", "add", "blackhole", self._net, "metric", BLACK_HOLE_METRIC)
            for command in (
                ("addr", "add", f"{self.there}/30", "dev", inner),
                ("link", "set", inner, "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", self.name, *command)
        except (OSError, subprocess.CalledProcessError):
            self.close()
            raise

    @property
    def path(self) -> Path:
        """By which a process enters it."""
        return NAMES / self.name

    @property
    def enter(self) -> list[str]:
        """What goes before a command that shall run in it."""
        return ["nsenter", f"--net={self.path}"]

    def cut(self) -> None:
        _ip("link", "set", self._end, "down")

    def heal(self) -> None:
        _ip("link", "set", self._end, "up")

    @property
    def is_cut(self) -> bool:
        return Path(f"/sys/class/net/{self._end}/operstate").read_text().strip() == "down"

    def close(self) -> None:
        for command in (
            ("route", "del", "blackhole", self._net, "metric", BLACK_HOLE_METRIC),
            ("link", "del", self._end),
            ("netns", "del", self.name),
        ):
            subprocess.run(["ip", *command], check=False, capture_output=True)


def make(number: int) -> Namespace | None:
    """None where none can be made here."""
    try:
        return Namespace(number)
    except (OSError, subprocess.CalledProcessError):
        return None


def _ip(*command: str) -> None:
    subprocess.run(["ip", *command], check=True, capture_output=True)
