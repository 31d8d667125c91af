"""Our own scripts and styles come as one file each, which a browser may keep for as long as it likes."""

from __future__ import annotations

import asyncio
import re

import httpx2
import pytest

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.app import create_dash
from rlvitals_dashboard.bundle import ALONE, ASSETS, bundle
from tests.dashboard.fake import COOKIE, FakeService


def fetch(path: str, cookie: str = "") -> httpx2.Response:
    async def main() -> httpx2.Response:
        fake = FakeService()
        create_dash(fake.app, Api.of_app(fake.app))
        transport = httpx2.ASGITransport(app=fake.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://vitals") as client:
            return await client.get(path, headers={"cookie": cookie})

    return asyncio.run(main())


@pytest.mark.parametrize("kind", ["css", "js"])
def test_every_file_of_ours_is_in_it_once(kind: str) -> None:
    body = bundle(kind).body.decode()
    assert re.findall(rf"^/\* (\S+\.{kind}) \*/$", body, re.M) == sorted(
        path.name for path in ASSETS.glob(f"*.{kind}") if path.name not in ALONE
    )


@pytest.mark.parametrize(("kind", "media_type"), [("css", "text/css"), ("js", "text/javascript")])
def test_it_comes_to_a_stranger_too_and_is_kept(kind: str, media_type: str) -> None:
    answer = fetch(f"/ui/bundle/{bundle(kind).name}")
    assert (answer.status_code, answer.content) == (200, bundle(kind).body)
    assert answer.headers["content-type"].startswith(media_type)
    assert "immutable" in answer.headers["cache-control"]


def test_what_the_styles_point_at_is_there() -> None:
    pointed = re.findall(r"""url\(["']?([^"')]+)""", bundle("css").body.decode())
    assert pointed
    for address in pointed:
        assert fetch(f"/ui/bundle/{address}").status_code == 200, address


def test_of_another_version_there_is_nothing() -> None:
    assert fetch("/ui/bundle/0000000000000000.js").status_code == 404


def test_a_page_asks_for_both_and_for_no_other_file_of_ours_but_the_first_script() -> None:
    page = fetch("/ui/", cookie=COOKIE).text
    ours = re.findall(r'(?:src|href)="/ui/(bundle/[^"]+|assets/[^"]+)"', page)
    assert sorted(ours) == sorted(
        ["assets/icon.svg", "assets/before-paint.js", *(f"bundle/{bundle(kind).name}" for kind in ("css", "js"))]
    )
    assert page.index("bundle/") < page.index("DashRenderer")
