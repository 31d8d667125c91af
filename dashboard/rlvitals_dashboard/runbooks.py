"""The runbooks that come with the rules, as the dashboard shows them: a machine without the web has them too."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent
_FOLDERS = (_PACKAGE / "runbooks", _PACKAGE.parents[1] / "docs" / "runbooks")
"""In an installed package, and in a checkout."""
_NAME = re.compile(r"[a-z0-9_]{1,64}")
_PATH = re.compile(r"docs/runbooks/([a-z0-9_]{1,64})\.md")
_TITLE = re.compile(r"\A# .*\n")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)\n?")
_NEAR = re.compile(r"\[([^\]]*)\]\((?!https?://)[^)]*\)")
"""A link to another file of the documentation, which is not served."""


def runbook_of(path: str) -> str:
    """The name of the runbook that a rule points to, "" where none of that name came with the rules."""
    found = _PATH.fullmatch(path)
    return found[1] if found is not None and read_runbook(found[1]) else ""


@cache
def read_runbook(name: str) -> str:
    """Markdown without its title, pictures and links within the documentation; "" for an unknown name."""
    if _NAME.fullmatch(name) is None:
        return ""
    paths = (folder / f"{name}.md" for folder in _FOLDERS)
    text = next((path.read_text(encoding="utf-8") for path in paths if path.is_file()), "")
    return _NEAR.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", _TITLE.sub("", text)))).strip()
