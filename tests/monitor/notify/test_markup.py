"""Text from outside within Markdown, judged by a CommonMark parser that the channels do not use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.markup import as_markdown, inert
from rlvitals_monitor.notify.message import Message
from rlvitals_monitor.notify.notification import tell_one
from tests.monitor.planted import a_transition, an_alert

LINK = "https://me/ui/run/r1?attempt=t1&from=20&to=220"
HARMLESS = {
    "heading_open", "heading_close", "inline", "text", "paragraph_open", "paragraph_close", "blockquote_open",
    "blockquote_close", "softbreak", "hardbreak", "link_open", "link_close",
    # A line that starts like a list's is one, to no effect.
    "bullet_list_open", "bullet_list_close", "ordered_list_open", "ordered_list_close", "list_item_open",
    "list_item_close", "hr",
}  # fmt: skip


def message(text: str) -> Message:
    alert = an_alert(rule=text, metric=text, summary=text, advice=text)
    run = RunInfo(id="r1", name=text, project=text)
    return compose(tell_one(id="m1", transition=a_transition(alert), run=run, link=LINK))


def tokens(markdown: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown):
        yield token
        yield from token.children or ()


ATTACKS = [
    "[click](https://evil.example)",
    "[click](evil.example)",
    "![pixel](//evil.example/p.png)",
    "[ref][1] [1]: //evil.example",
    "<a href='//evil.example'>x</a>",
    "<https://evil.example>",
    "**bold** *it* _it_ __b__ ~~gone~~ `code` ``` fence",
    "# heading ### another",
    "> quote",
    "| a | b | |---|---|",
    "\\*not escaped\\* &lt;b&gt;",
    "<font color='warning'>red</font> <@all> <@userid>",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_no_attack_becomes_markup(text: str) -> None:
    found = list(tokens(as_markdown(message(text), 4096)))
    assert {token.type for token in found} <= HARMLESS
    assert [token.attrs["href"] for token in found if token.type == "link_open"] == [LINK.replace("&", "&")]


@given(text=st.text(alphabet="[]()!<>*_~`#|\\:/@&;=-+ .1a好\n", max_size=60))
def test_no_text_becomes_markup(text: str) -> None:
    found = list(tokens(as_markdown(message(text), 4096)))
    assert {token.type for token in found} <= HARMLESS
    assert len([token for token in found if token.type == "link_open"]) == 1


@pytest.mark.parametrize("name", ["kl_coef", "reward/kl_pull_dominates", "run-3 (r1)", "好_run"])
def test_names_that_people_copy_stay_as_they_are(name: str) -> None:
    assert inert(name) == name


@pytest.mark.parametrize("octets", [300, 1000, 4096])
@pytest.mark.parametrize("filler", ["好", "🙂", "a", "é", "<"])
def test_the_bound_is_bytes_and_is_kept_between_characters_with_the_link_whole(filler: str, octets: int) -> None:
    markdown = as_markdown(message(filler * 5000), octets)
    assert len(markdown.encode()) <= octets
    assert markdown.endswith(f"[Open the run at step 120]({LINK})")
    assert "\ufffd" not in markdown


def test_chinese_fills_the_bound_to_its_last_character() -> None:
    full = message("好" * 5000)
    sizes = {octets: len(as_markdown(full, octets).encode()) for octets in range(1000, 1012)}
    assert all(octets - 3 < size <= octets for octets, size in sizes.items())
