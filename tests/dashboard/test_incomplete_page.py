"""A page whose files do not all come, as when the service starts anew meanwhile, says so and becomes whole."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.dashboard.conftest import Site
from tests.dashboard.test_pages import RUN_PAGE, shown, site  # noqa: F401

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("lost", [r"dash_renderer[\w.]*\.js", r"/bundle/\w+\.js", r"/react-dom@"])
def test_a_script_that_does_not_come_is_asked_for_again(
    site: Site,  # noqa: F811
    chromium: Any,
    lost: str,
) -> None:
    page = chromium.new_context().new_page()
    page.goto(f"{site.url}/ui/login")
    cut: list[str] = []

    def cut_once(route: Any) -> None:
        if len(cut) < 2:
            cut.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    page.route(re.compile(lost), cut_once)
    page.goto(f"{site.url}{RUN_PAGE}")
    expect(page.locator("#incomplete")).to_be_visible()
    expect(page.locator("#incomplete")).to_contain_text("A file of this page did not come.")
    shown(page, "reward.mean")
    expect(page.locator("#incomplete")).to_be_hidden()
    assert len(cut) == 2
    page.context.close()
