"""What a shared link shows: its run, and nothing else. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

OF_ONE_RUN = "/api/v1/runs/{run}"
ASKED_BY_RUN = frozenset({"/api/v1/alerts", "/api/v1/commands"})
"""Lists over all runs that may be read with this run as the only one asked for."""
VIEW_CHARS_MAX = 2_000
VIEW = re.compile(r"(/[a-z-]{1,40})?(\?[!-~]*)?")
"""What may stand behind a run in its page's address: a page below it, and a query."""


def share_may_read(shared: str, path: str, method: str, named: str, asked: Sequence[str]) -> bool:
    """``path``: the route's, with its braces; ``named``: the run in it; ``asked``: all values of ``?run=``."""
    if method not in ("GET", "HEAD"):
        return False
    if path == OF_ONE_RUN or path.startswith(f"{OF_ONE_RUN}/"):
        return named == shared
    return path in ASKED_BY_RUN and list(asked) == [shared]
