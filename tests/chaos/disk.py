"""A small disk of its own that can be filled, where one may be mounted."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Disk:
    """``small`` is False where no file system may be mounted: then it is a plain folder, which is never filled."""

    def __init__(self, folder: Path, mib: int, *, mode: str = "755") -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode={mode}", "tmpfs", str(folder)]
        self.small = subprocess.run(command, check=False, capture_output=True).returncode == 0
        self._filler = folder / "filler"

    def fill(self) -> None:
        """Takes all room that is left."""
        if not self.small:
            return
        with self._filler.open("wb", buffering=0) as file:
            block = bytes(1 << 20)
            try:
                while file.write(block):
                    pass
            except OSError:
                pass

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        self.free()
        if self.small:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)
