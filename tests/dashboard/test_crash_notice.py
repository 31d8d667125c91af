"""What a page says when the service itself stumbles over one of its callbacks, in a real browser."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from dash import html
from playwright.sync_api import expect

from rlvitals_dashboard import app, problem_banner
from tests.dashboard.conftest import Site
from tests.dashboard.synthetic import lively

SECRET = "postgresql://user:hush@host"


@pytest.mark.browser
def test_a_page_or_a_part_that_the_service_stumbles_over_says_so_and_comes_by_itself(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [True]

    async def page_in_question(*_: object) -> Any:
        if broken:
            raise RuntimeError(SECRET)
        return html.Main(html.H1("Well again"), className="page")

    async def part_in_question(*_: object) -> Any:
        raise RuntimeError(SECRET)

    monkeypatch.setitem(app.PAGES, "import", page_in_question)  # type: ignore[arg-type]
    monkeypatch.setattr(problem_banner, "_told", part_in_question)
    with Site(lively()) as site, caplog.at_level(logging.ERROR, "rlvitals_dashboard"):
        page = open_page(site.url, "/ui/import")
        expect(page.locator("main.failed h1")).to_have_text("This page could not be made")
        expect(page.locator("#crash .notice")).to_contain_text("The service stumbled over a part of this page")
        assert "hush" not in page.content()
        broken.clear()
        expect(page.locator("main h1")).to_have_text("Well again")
        page.close()
    assert {"a page could not be made", "a callback of a page failed"} <= {r.message for r in caplog.records}
    assert SECRET in caplog.text
