"""Where a training stands in the middle of something until it is let go: files, since ranks are processes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.01
LONGEST_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One moment of one run, which all of its ranks reach."""

    folder: Path
    run: str
    step: int

    def stand(self, rank: int) -> None:
        """A rank's side: says that it is here and waits. Raises TimeoutError when nobody lets it go."""
        self._file(f"rank-{rank}").touch()
        pause = threading.Event()
        for _ in range(int(LONGEST_S / POLL_S)):
            if self._file("go").exists():
                return
            pause.wait(POLL_S)
        raise TimeoutError(f"nobody opened {self.run} at step {self.step}")

    def is_reached(self, size: int) -> bool:
        return all(self._file(f"rank-{rank}").exists() for rank in range(size))

    def open(self) -> None:
        self._file("go").touch()

    def _file(self, what: str) -> Path:
        return self.folder / f"{self.run}-{self.step}.{what}"
