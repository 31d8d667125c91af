from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from rlvitals.contract.command import CommandState
from rlvitals_dashboard.audit_words import DONE, FORMS, detail_words, what_words
from rlvitals_dashboard.language import Language, language


@pytest.fixture
def in_chinese() -> Iterator[None]:
    token = language.set(Language.CHINESE)
    yield
    language.reset(token)


def written() -> Iterator[str]:
    """What the service's own source writes down as done."""
    for path in sorted(Path(str(files("rlvitals_monitor"))).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("append_audit", "audit"):
                words = (k.value for k in node.keywords if k.arg == "what")
                yield from (w.value for w in words if isinstance(w, ast.Constant) and isinstance(w.value, str))


def test_whatever_the_service_writes_down_as_done_has_its_words() -> None:
    assert set(written()) <= set(DONE)
    assert {state.value for state in CommandState} <= set(DONE)
    assert set(FORMS) <= set(DONE)


@pytest.mark.usefixtures("in_chinese")
@pytest.mark.parametrize(
    ("what", "detail", "said"),
    [
        ("signed in", "with token ab12 from ::1, session 77", "使用令牌 ab12，来自 ::1，会话 77"),
        (
            "retention chosen",
            "all projects: points 90 d, texts 30 d, histograms for ever, runs for ever",
            "所有项目：数据点 90 d，文本 30 d，直方图 永久，训练 永久",
        ),
        ("policy chosen", "project math: approve", "项目 math：批准"),
        (
            "silence asked for",
            "f1: rule=kl until 2026-01-02 03:04 UTC: <b>until then</b>",
            "f1：rule=kl，至 2026-01-02 03:04 UTC：<b>until then</b>",
        ),
        ("channel created", "night: slack to a.b, from critical", "night：slack 发往 a.b，严重及以上"),
        ("run owner", "nobody → {after}", "无人 → {after}"),
        ("run notes", "yes", "yes"),
        ("what nobody wrote", "x", "x"),
    ],
)
def test_a_line_is_said_in_chinese_with_names_and_what_people_wrote_as_they_are(
    what: str, detail: str, said: str
) -> None:
    assert detail_words(what, detail) == said
    assert bool(re.search("[\u4e00-\u9fff]", what_words(what))) is (what in DONE)


@pytest.mark.parametrize("detail", ["nobody → Lin", "by a link", "", "NaN", "{count} {moment}"])
def test_in_english_a_line_is_as_it_was_written(detail: str) -> None:
    assert all(detail_words(what, detail) == detail for what in DONE)
