from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import httpx2
import pytest
from dash import html

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.app import create_dash
from rlvitals_dashboard.language import Language, choose, counted, language, phrase, sentences, t, woven
from tests.dashboard.fake import FakeService


@pytest.fixture
def in_chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    token = language.set(Language.CHINESE)
    yield
    language.reset(token)


def test_english_is_said_as_it_is_written() -> None:
    assert t("Runs") == "Runs"
    assert t("{count} runs firing", count=1200) == "1,200 runs firing"


@pytest.mark.usefixtures("in_chinese")
def test_chinese_is_said_by_the_catalogue_and_an_unknown_sentence_in_english() -> None:
    assert t("Runs") == "训练"
    assert t("Nobody wrote {this} down", this="yet") == "Nobody wrote yet down"


def test_english_counts_one_and_many() -> None:
    forms = phrase("{count} dog"), phrase("{count} dogs")
    assert [counted(n, *forms) for n in (0, 1, 2, 3000)] == ["0 dogs", "1 dog", "2 dogs", "3,000 dogs"]


def test_what_a_run_is_called_is_never_read_as_a_sentence() -> None:
    assert t("run {name}", name="{count} {name.__class__}") == "run {count} {name.__class__}"


def test_components_stand_in_their_places() -> None:
    link = html.A("here")
    assert woven("Look {place}, {count} times", place=link, count=2000) == ["Look ", link, ", ", "2,000", " times"]
    assert woven("{many}.", many=["a", "b"]) == ["a", "b", "."]


@pytest.mark.parametrize(
    ("cookies", "accepted", "spoken"),
    [
        ("", "", Language.ENGLISH),
        ("", "zh-CN,zh;q=0.9,en;q=0.8", Language.CHINESE),
        ("", "en-GB,zh;q=0.9", Language.ENGLISH),
        ("", "fr;q=0.9, zh-TW;q=0.8, en;q=0.1", Language.CHINESE),
        ("", "zh;q=0, en;q=0.1", Language.ENGLISH),
        ("", "zh;q=much", Language.ENGLISH),
        ("a=b; rlvitals_language=en", "zh", Language.ENGLISH),
        ("rlvitals_language=zh-CN; a=b", "en", Language.CHINESE),
        ("rlvitals_language=tlh", "zh", Language.CHINESE),
        ("rlvitals_language", "zh", Language.CHINESE),
        ("[]{};=\x00", "de", Language.ENGLISH),
    ],
)
def test_the_choice_wins_then_the_browser_then_english(cookies: str, accepted: str, spoken: Language) -> None:
    assert choose(cookies, accepted) is spoken


def test_the_catalogue_is_of_plain_text() -> None:
    known = sentences(Language.CHINESE)
    assert known
    assert all(isinstance(one, str) for pair in known.items() for one in pair)


def test_a_document_and_its_socket_say_their_language() -> None:
    """One worker keeps one socket for all tabs of a browser; which may speak different languages."""
    fake = FakeService()
    create_dash(fake.app, Api.of_app(fake.app))

    async def documents() -> dict[str, str]:
        transport = httpx2.ASGITransport(fake.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            await client.get("/ui/login")
            answers = {tag: await client.get("/ui/", headers={"accept-language": tag}) for tag in ("en", "zh-CN")}
            return {tag: answer.text for tag, answer in answers.items()}

    for tag, text in asyncio.run(documents()).items():
        assert f'<html lang="{tag}"' in text
        assert f'_dash-ws-callback?language={tag}"' in text
        assert re.search(rf'dash-ws-worker[^"]*[?&]language={tag}"', text)


def test_the_document_that_asks_wins_over_the_cookie() -> None:
    assert choose("rlvitals_language=en", "en", "language=zh-CN") is Language.CHINESE
    assert choose("rlvitals_language=en", "zh", "language=tlh&language=zh-CN") is Language.ENGLISH
