"""Where a channel's secrets come from: the text itself, ``{env: NAME}`` or ``{file: PATH}``.

Whoever writes the operator's file may name any variable and any path. Whoever comes by the API may name only what
was laid out for that: else a channel that leads to an address of theirs could carry every file of the service.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlvitals_monitor.rules.document import Item, RuleFileError

BYTES_MAX = 64 * 1024
ENV_PREFIX = "RLVITALS_CHANNEL_"
"""How the variables begin that a channel of the API may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSource:
    """``folder`` is the only one whose files may be named, ``env_prefix`` how all variables begin that may be."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    env_prefix: str = ""
    folder: Path | None = None

    def read(self, item: Item) -> str:
        """The secret. Raises `RuleFileError`, which never holds what was found."""
        try:
            entries = item.mapping(("env", "file"))
        except RuleFileError as error:
            if hasattr(item.node, "value") and isinstance(item.node.value, str):
                return item.text()
            raise error
        if len(entries) != 1:
            raise item.fail("expected one of env, file")
        return self._env(entries["env"]) if "env" in entries else self._file(entries["file"])

    def _env(self, item: Item) -> str:
        name = item.text()
        if not name.startswith(self.env_prefix):
            raise item.fail(f"expected a variable whose name begins with {self.env_prefix}, got {name[:60]!r}")
        if not self.environ.get(name):
            raise item.fail(f"expected the environment variable {name} to be set")
        return self.environ[name].strip()

    def _file(self, item: Item) -> str:
        path = Path(item.text())
        try:
            allowed = self.folder is None or path.resolve().is_relative_to(self.folder.resolve())
            text = _read(path) if allowed else ""
        except OSError as error:
            raise item.fail(f"expected a readable file: {path}: {error.strerror}") from None
        except (ValueError, RuntimeError):  # no UTF-8; a zero in the path; a loop of links
            raise item.fail(f"expected a readable UTF-8 file: {str(path)[:200]!r}") from None
        if not allowed:
            raise item.fail(f"expected a file in {self.folder}")
        return text.strip()


def _read(path: Path) -> str:
    """Raises OSError, also for what is no plain file: a pipe would hold up all channels, a device never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file")
    with path.open("rb") as file:
        found = file.read(BYTES_MAX + 1)
    if len(found) > BYTES_MAX:
        raise OSError(errno.EFBIG, f"it has more than {BYTES_MAX} bytes")
    return found.decode("utf-8")
