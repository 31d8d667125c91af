from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import httpx2
import pytest

from rlvitals.contract.access import AccessKind, MeView
from rlvitals.contract.codec import dumps, encode
from rlvitals_dashboard.api import Api, SignInNeeded, Visitor, visitor
from rlvitals_dashboard.gate import Gate
from rlvitals_dashboard.language import Language, language

Message = MutableMapping[str, Any]


class Behind:
    """The app behind the gate: remembers where it was asked, and as whom."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Visitor | None]] = []
        self.spoken: list[Language] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((scope["path"], visitor.get()))
        self.spoken.append(language.get())


ANNA = MeView(kind=AccessKind.USER, name="anna", may=("read",))
TRAINER = MeView(kind=AccessKind.TOKEN, name="trainer", may=("ingest:p",))
GUEST = MeView(kind=AccessKind.SHARE, name="a shared link", may=(), run="r:1", view="/texts?step=5")


def gate(behind: Behind, status: int, me: MeView) -> Gate:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, content=dumps(encode(me)))

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://service")
    return Gate(behind, api=Api(client), prefix="/ui/")


def knock(
    path: str, *, status: int = 200, kind: str = "http", accept: str = "", me: MeView = ANNA
) -> tuple[Behind, list[Message]]:
    behind, sent = Behind(), list[Message]()

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (b"host", b"vitals:8642"),
        (b"cookie", b"rlvitals_session=x"),
        (b"accept-language", accept.encode()),
    ]
    scope = {"type": kind, "path": path, "headers": headers, "scheme": "http"}
    asyncio.run(gate(behind, status, me)(scope, receive, send))
    return behind, sent


@pytest.mark.parametrize("path", ["/ui/", "/ui/run/x", "/ui/anything"])
def test_every_page_is_one_document(path: str) -> None:
    behind, _ = knock(path, status=200)
    assert behind.asked == [("/ui/", Visitor(cookie="rlvitals_session=x", host="vitals:8642"))]


@pytest.mark.parametrize("status", [401, 403])
def test_a_stranger_is_shown_the_sign_in(status: int) -> None:
    behind, sent = knock("/ui/run/x", status=status)
    assert behind.asked == []
    assert sent[0]["status"] == 303
    assert (b"location", b"/ui/login") in sent[0]["headers"]


def test_who_may_read_nothing_is_shown_the_sign_in() -> None:
    behind, sent = knock("/ui/run/x", me=TRAINER)
    assert (behind.asked, sent[0]["status"]) == ([], 303)


@pytest.mark.parametrize("path", ["/ui/", "/ui/run/r:10", "/ui/run/other", "/ui/settings", "/ui/run/r:1x/texts"])
def test_a_shared_link_leads_to_its_view_and_nowhere_else(path: str) -> None:
    behind, sent = knock(path, me=GUEST)
    assert behind.asked == []
    assert (b"location", b"/ui/run/r%3A1/texts?step=5") in sent[0]["headers"]


@pytest.mark.parametrize("path", ["/ui/run/r:1", "/ui/run/r:1/texts", "/ui/run/r:1/incidents"])
def test_a_shared_links_run_has_all_its_pages(path: str) -> None:
    behind, _ = knock(path, me=GUEST)
    assert len(behind.asked) == 1


def test_the_visitors_own_address_is_told_to_the_service() -> None:
    seen: list[tuple[str, Any]] = []

    async def service(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["scheme"], scope["client"][0]))
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    token = visitor.set(Visitor(client="192.0.2.7", scheme="https"))
    with pytest.raises(SignInNeeded):
        asyncio.run(Api.of_app(service).me())
    visitor.reset(token)
    assert seen == [("https", "192.0.2.7")]


def test_a_strangers_socket_is_closed_before_it_opens() -> None:
    behind, sent = knock("/ui/_dash-ws-callback", status=401, kind="websocket")
    assert behind.asked == []
    assert [m["type"] for m in sent] == ["websocket.close"]


def test_a_known_visitors_socket_keeps_its_path() -> None:
    behind, _ = knock("/ui/_dash-ws-callback", status=200, kind="websocket")
    assert [path for path, _ in behind.asked] == ["/ui/_dash-ws-callback"]


@pytest.mark.parametrize(
    "path", ["/ui/login", "/ui/assets/icon.svg", "/ui/bundle/1.css", "/ui/_dash-update-component"]
)
def test_what_a_stranger_needs_and_what_the_api_judges_passes(path: str) -> None:
    behind, _ = knock(path, status=401)
    assert [asked for asked, _ in behind.asked] == [path]


def test_a_service_in_trouble_shows_the_page_that_says_so() -> None:
    behind, _ = knock("/ui/", status=500)
    assert [path for path, _ in behind.asked] == ["/ui/"]


@pytest.mark.parametrize("path", ["/api/v1/runs", "/healthz", "/uibook"])
def test_other_paths_are_none_of_its_business(path: str) -> None:
    behind, _ = knock(path, status=401)
    assert behind.asked == [(path, None)]


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_the_visitors_language_reaches_what_answers(kind: str) -> None:
    behind, _ = knock("/ui/_dash-ws-callback", status=200, kind=kind, accept="zh-CN,en;q=0.5")
    assert behind.spoken == [Language.CHINESE]
    assert language.get() is Language.ENGLISH
