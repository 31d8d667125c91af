"""The Chinese pages have the commands, settings, addresses and examples of the English ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAIRS = {
    "README.zh-CN.md": "README.md",
    "docs/zh-CN/alerts.md": "docs/notify.md",
    "docs/zh-CN/control.md": "docs/control.md",
}
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
SETTING = re.compile(r"\bRLVITALS_[A-Z_]*[A-Z]\b")
ADDRESS = re.compile(r"/api/v1/[\w/{}.-]*\w\}?")
COMMAND = re.compile(r"\b(?:rlvitals|make|python -m) [a-z][\w.-]*(?: [a-z][a-z-]+)?|--[a-z][a-z-]+")
LINK = re.compile(r"\]\(([^)#]+)(#[^)]*)?\)")


def without_honest_limits(text: str) -> str:
    """They change with every release: the Chinese page leads to the English ones."""
    return re.sub(r"^## Honest limits\n.*?(?=^\[ARCHITECTURE)", "", text, flags=re.DOTALL | re.MULTILINE)


def named(text: str) -> set[str]:
    """What can be typed, called or set."""
    found = set(SETTING.findall(text)) | set(ADDRESS.findall(text))
    for code in (*FENCE.findall(text), *INDENTED.findall(text), *SPAN.findall(FENCE.sub("", text))):
        found |= set(COMMAND.findall(re.sub(r"\s#.*", "", code)))
    return found


def examples(text: str) -> list[list[str]]:
    """Code blocks, without their comments."""
    blocks = ([re.sub(r"\s+#.*", "", line) for line in block.splitlines()] for block in FENCE.findall(text))
    return sorted([line for line in block if line.strip()] for block in blocks)


def read(path: str) -> str:
    return without_honest_limits((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("chinese", PAIRS)
def test_both_languages_name_the_same_commands_settings_and_addresses(chinese: str) -> None:
    ours, theirs = named(read(chinese)), named(read(PAIRS[chinese]))
    assert (ours - theirs, theirs - ours) == (set(), set())


@pytest.mark.parametrize("chinese", PAIRS)
def test_both_languages_have_the_same_examples(chinese: str) -> None:
    assert examples(read(chinese)) == examples(read(PAIRS[chinese]))


def test_the_page_on_attaching_says_what_the_readme_says_of_it() -> None:
    readme = read("README.md")
    section = readme[readme.index("## Attach to your trainer") : readme.index("## Before the first step")]
    page = read("docs/zh-CN/attach.md")
    for_all = {
        "RLVITALS_URL",
        "RLVITALS_TOKEN",
        "RLVITALS_MODE",
        "RLVITALS_TEXTS",
        "rlvitals sync",
        "rlvitals tail",
    }
    assert for_all <= named(page)
    assert named(page) <= named(section) | {"rlvitals sync", "rlvitals tail"}
    lines = re.findall(r"^\| [^|]+ \| (`[^`]+`)", section, re.MULTILINE)
    assert [line for line in lines if line not in page and "tail output" not in line] == []


@pytest.mark.parametrize("path", [*PAIRS, "docs/zh-CN/attach.md"])
def test_the_links_of_a_chinese_page_lead_somewhere(path: str) -> None:
    place = (ROOT / path).parent
    targets = [one for one, _ in LINK.findall(read(path)) if "://" not in one]
    assert targets
    assert [one for one in targets if not (place / one).exists()] == []


def test_the_english_pages_lead_to_the_chinese_ones() -> None:
    assert "(README.zh-CN.md)" in read("README.md")
