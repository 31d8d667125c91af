"""Telegram's sendMessage: parses the HTML as strictly, and then looks for what Telegram makes active by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import ClassVar

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal
from tests.monitor.notify.providers.form import is_form, read_form

_TAGS = {"b", "i", "u", "s", "a", "code", "pre", "blockquote"}
_ACTIVE = re.compile(r"(?<!\w)[@#/$]\w|\w\.[a-z]{2,}|://")
STORED = json.dumps({"ok": True, "result": {"message_id": 365, "chat": {"id": -100, "title": "好" * 1000}}})


def error(status: int, description: str, verdict: Verdict, **parameters: int) -> Case:
    body: dict[str, object] = {"ok": False, "error_code": status, "description": description}
    if parameters:
        body["parameters"] = parameters
    rest_s = parameters.get("retry_after")
    said = Said(status=status, body=json.dumps(body).encode())
    return Case(said=said, verdict=verdict, rest_s=None if rest_s is None else float(rest_s), words=description)


class Telegram(HttpSimulator):
    kind = ChannelKind.TELEGRAM
    host = "api.telegram.org"
    path = "/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDfake/sendMessage"
    options: ClassVar = {"chat_id": "-1001234567890", "message_thread_id": "7"}
    paths = ("/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDfake/sendPhoto",)
    kinds = ("application/json", "multipart/form-data")
    most_bytes = 100_000
    ok = Said(body=STORED.replace(": ", ":").encode())
    rejected = Said(status=400, body=b'{"ok":false,"error_code":400,"description":"Bad Request: can\'t parse"}')
    codes: ClassVar = (
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected ok: true"),
        Case(said=Said(body=b'{"ok":false,"description":"x"}'), verdict=Verdict.RETRY, words="expected ok: true"),
    )
    too_fast: ClassVar = (
        error(429, "Too Many Requests: retry after 35", Verdict.RETRY, retry_after=35),
        refusal(429, b"slow", Verdict.RETRY, rest_s=7.0, retry_after="7"),
    )
    refused: ClassVar = (
        error(401, "Unauthorized", Verdict.PERMANENT),
        error(404, "Not Found", Verdict.PERMANENT),
        error(400, "Bad Request: chat not found", Verdict.PERMANENT),
        error(403, "Forbidden: bot was kicked from the supergroup chat", Verdict.PERMANENT),
        error(403, "Forbidden: bot was blocked by the user", Verdict.PERMANENT),
        error(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            Verdict.PERMANENT,
            migrate_to_chat_id=-1009876543210,
        ),
    )

    def faults(self, got: Got) -> Iterator[str]:
        if is_form(got) is not got.path.startswith(self.paths[0]):
            yield f"{got.path} with {got.headers.get('content-type')}"
        yield from _photo_faults(got) if is_form(got) else _message_faults(got)

    def text(self, got: Got) -> str:
        return read_form(got)["caption"].data.decode() if is_form(got) else str(json.loads(got.body)["text"])


def _message_faults(got: Got) -> Iterator[str]:
    body = json.loads(got.body)
    if set(body) != {"chat_id", "message_thread_id", "text", "parse_mode", "link_preview_options"}:
        yield f"keys are {set(body)}"
    if (body["chat_id"], body["message_thread_id"]) != ("-1001234567890", 7):
        yield "Bad Request: chat not found"
    if body["link_preview_options"] != {"is_disabled": True}:
        yield "a preview would be fetched"
    yield from _text_faults(body["text"], 4096)


def _photo_faults(got: Got) -> Iterator[str]:
    """Telegram takes photos of 10 MB, with a caption of 1,024 characters."""
    form = read_form(got)
    told = {name: field.data for name, field in form.items() if not field.filename}
    if set(told) != {"chat_id", "message_thread_id", "caption", "parse_mode"} or set(form) - set(told) != {
        "photo"
    }:
        yield f"form fields {sorted(form)}"
    if (told["chat_id"], told["message_thread_id"], told["parse_mode"]) != (b"-1001234567890", b"7", b"HTML"):
        yield "Bad Request: chat not found"
    photo = form["photo"]
    if photo.kind != "image/png" or not photo.data.startswith(b"\x89PNG"):
        yield "Bad Request: IMAGE_PROCESS_FAILED"
    yield from _text_faults(told["caption"].decode(), 1024)


def _text_faults(text: str, limit: int) -> Iterator[str]:
    page = Page()
    page.feed(text)
    page.close()
    if page.open:
        yield f"can't find end tag of {page.open}"
    if not 0 < len("".join(page.shown).encode("utf-16-le")) // 2 <= limit:
        yield "message is too long or empty"
    yield from page.faults


class Page(HTMLParser):
    """What is shown, and what is wrong or active of it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.shown: list[str] = []
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if tag not in _TAGS or names != (["href"] if tag == "a" else []):
            self.faults.append(f"unsupported tag {tag} {names}")
        if "code" in self.open or "pre" in self.open:
            self.faults.append(f"{tag} within code")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"unexpected end tag {tag}")

    def handle_data(self, data: str) -> None:
        self.shown.append(data)
        if not self.open and _ACTIVE.search(data):
            self.faults.append(f"active text {data!r}")
