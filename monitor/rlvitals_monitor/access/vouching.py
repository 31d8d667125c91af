"""Whether a proxy before the service has signed somebody in: it names the person, and shows a secret. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

SECRET_HEADER = "x-rlvitals-proxy-secret"
SECRET_CHARS_MIN = 32
NEVER = frozenset({"authorization", "cookie", "host", "origin", SECRET_HEADER})
"""Headers that say something else, and so name nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Every value of the header that names a person, and of the one that shows the secret."""

    names: Sequence[str]
    secrets: Sequence[str]

    def is_vouched_for(self, secret: str) -> bool:
        """False also where a header came twice: one of them is then a visitor's own."""
        if len(self.names) != 1 or len(self.secrets) != 1 or len(secret) < SECRET_CHARS_MIN:
            return False
        return hmac.compare_digest(self.secrets[0].encode(), secret.encode())

    @property
    def name(self) -> str:
        """Header bytes are read as Latin-1; people's names are UTF-8."""
        told = self.names[0]
        try:
            return told.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return told
