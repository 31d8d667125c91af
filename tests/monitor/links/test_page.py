"""The page behind a link: what it says, and that nothing put into it acts."""

from __future__ import annotations

import ast
import inspect
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from rlvitals.contract.alert import AlertState
from rlvitals.contract.command import CommandKind, CommandState
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.auth import Principal
from rlvitals_monitor.links import page
from rlvitals_monitor.links.act import Voice
from rlvitals_monitor.links.page import HEADERS, Visitor, ask, refuse
from rlvitals_monitor.links.words import CHINESE
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.store.links import LinkAct
from tests.monitor.links.planted import COMMAND, an_offer
from tests.monitor.planted import NOW, an_alert

NAMED = Visitor(principal=None, voice=Voice(who="ann", named=True), sign_in="/ui/login?next=x")
UNNAMED = replace(NAMED, voice=Voice(who="a link in team", named=False))
STRANGER = replace(NAMED, voice=None)
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><form action=//evil.example><button>",
    "{{ 7 * 7 }}{% include '/etc/passwd' %}",
    "\u202ednuoHgnorw \u2066x\u200b",
    "\x1b[31mred\x00\x07",
    "@everyone [click](javascript:alert(1))",
    "\ud800\udfff bad",
    "x" * 1_000_000,
]


class Tags(HTMLParser):
    """The tags of a page, and its visible text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", Tags(re.sub(r"(?s)<style>.*?</style>", "", html)).text)


@pytest.mark.parametrize(
    ("kind", "argument", "said"),
    [
        (CommandKind.PAUSE, 600.0, "for at most 600 s, and then goes on by itself"),
        (CommandKind.RESUME, None, "Training goes on"),
        (CommandKind.STOP, None, "writes a checkpoint at the next step boundary and ends"),
        (CommandKind.CHECKPOINT, None, "and goes on"),
        (CommandKind.SET_KL_COEF, 0.05, "the KL coefficient becomes 0.05"),
        (CommandKind.SCALE_LR, 0.5, "the learning rate is multiplied by 0.5"),
        (CommandKind.SET_KNOB, 0.3, "clip becomes 0.3"),
    ],
)
def test_it_says_what_would_happen_before_it_does(kind: CommandKind, argument: float | None, said: str) -> None:
    knob = "clip" if kind is CommandKind.SET_KNOB else ""
    command = replace(COMMAND, kind=kind, argument=argument, knob=knob)
    shown = text_of(ask(an_offer(LinkAct.APPROVE, command=command), NAMED, Language.ENGLISH, NOW))
    assert said in shown
    assert "tiny run (r1)" in shown
    assert "rule:kl_pull_dominates" in shown
    assert "kl.pull_ratio 3.5 (threshold 1)" in shown


@pytest.mark.parametrize(
    ("value", "said"),
    [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (None, "missing")],
)
def test_numbers_that_are_none_are_told_apart(value: float | None, said: str) -> None:
    alert = an_alert(value=value)
    assert f"kl.pull_ratio {said} (threshold 1)" in text_of(
        ask(an_offer(LinkAct.SILENCE, alert=alert), NAMED, Language.ENGLISH, NOW)
    )
    command = replace(COMMAND, argument=value)
    assert f"becomes {said}." in text_of(
        ask(an_offer(LinkAct.APPROVE, command=command), NAMED, Language.ENGLISH, NOW)
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_that_others_wrote_acts_or_hides(hostile: str) -> None:
    alert = an_alert(rule=hostile, summary=hostile, metric=hostile, acknowledged_by=hostile)
    command = replace(COMMAND, who=hostile, why=hostile, knob=hostile, reason=hostile)
    run = RunInfo(id="r1", name=hostile, project=hostile)
    voice = Visitor(
        principal=Principal(name=hostile, scopes=frozenset()), voice=Voice(who=hostile, named=True), sign_in="/x"
    )
    for act in LinkAct:
        for used in ({}, {"used_at": NOW, "used_by": hostile}):
            offer = an_offer(act, command=command, alert=alert, run=run, **used)
            html = ask(offer, voice, Language.ENGLISH, NOW)
            assert set(Tags(html).tags) <= {
                *("html", "head", "meta", "title", "style", "body", "main", "p", "h1", "dl", "dt", "dd", "bdi"),
                *("form", "button", "label", "input", "a"),
            }
            assert not re.search(r"[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b\ud800-\udfff]", html)
            assert ("{{ 7 * 7 }}" in html) is ("{{ 7 * 7 }}" in hostile)
            assert len(html) < 30_000


def test_a_button_is_only_where_it_would_do_something() -> None:
    shown = {
        "by name": ask(an_offer(LinkAct.APPROVE), NAMED, Language.ENGLISH, NOW),
        "without": ask(an_offer(LinkAct.APPROVE), UNNAMED, Language.ENGLISH, NOW),
        "stranger": ask(an_offer(LinkAct.APPROVE), STRANGER, Language.ENGLISH, NOW),
        "used": ask(an_offer(LinkAct.APPROVE, used_at=NOW, used_by="ann"), NAMED, Language.ENGLISH, NOW),
        "unknown": refuse(""),
    }
    assert [who for who, html in shown.items() if "<button" in html] == ["by name", "without"]
    assert [who for who, html in shown.items() if "/ui/login?next=x" in html] == ["without", "stranger"]
    assert "one voice without a name" in text_of(shown["without"])
    assert "You act as ann." in text_of(shown["by name"])


def test_after_its_use_it_says_by_whom_and_what_came_of_it() -> None:
    command = replace(COMMAND, state=CommandState.REFUSED, reason="the run is over")
    html = ask(
        an_offer(LinkAct.APPROVE, command=command, used_at=NOW, used_by="ann"), NAMED, Language.ENGLISH, NOW
    )
    assert "by ann. It works once." in text_of(html)
    assert "refused: the run is over" in text_of(html)


def test_whoever_decides_sees_that_the_alert_behind_a_command_is_over() -> None:
    offer = an_offer(LinkAct.APPROVE, command=COMMAND)
    assert "Over at step" not in text_of(ask(offer, NAMED, Language.ENGLISH, NOW))
    over = replace(offer, alert=an_alert(state=AlertState.RESOLVED, resolved_step=47))
    assert "Over at step47" in text_of(ask(over, NAMED, Language.ENGLISH, NOW))


def test_all_that_it_says_has_a_chinese_sentence() -> None:
    tree = ast.parse(inspect.getsource(page))
    written = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    calls = {
        node.args[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "say"
        and isinstance(node.args[0], ast.Constant)
    }
    assert calls <= set(CHINESE)
    assert {words for pair in page._QUESTIONS.values() for words in pair} <= set(CHINESE)
    assert set(page._EFFECTS.values()) <= set(CHINESE)
    assert set(page._EFFECTS) == set(CommandKind)
    assert set(CHINESE) <= written


def test_the_chinese_page_is_told_so_and_keeps_every_number() -> None:
    for act in LinkAct:
        html = ask(an_offer(act), UNNAMED, Language.CHINESE, NOW)
        assert '<html lang="zh">' in html
        assert "kl.pull_ratio 3.5（阈值 1）" in html
    for english, chinese in CHINESE.items():
        assert set(re.findall(r"\{\w+\}", english)) == set(re.findall(r"\{\w+\}", chinese)), english


def test_its_policy_lets_in_its_own_style_and_nothing_else() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy


def test_an_alert_that_has_ended_says_so() -> None:
    html = ask(
        an_offer(LinkAct.ACKNOWLEDGE, alert=an_alert(state=AlertState.RESOLVED)), NAMED, Language.ENGLISH, NOW
    )
    assert "Nothing is left to do: resolved." in text_of(html)
