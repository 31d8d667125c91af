"""Discord's webhook: the limits of an embed, and which of its answers say how long to wait in which unit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal
from tests.monitor.notify.providers.form import is_form, read_form

_KEYS = {"content", "embeds", "allowed_mentions"}
_EMBED_KEYS = {"title", "description", "color", "fields", "image"}
STORED = json.dumps({"type": 0, "content": "", "embeds": [{"description": "好" * 3000}], "id": "1"}).encode()


def limited(told: float, **headers: str) -> Said:
    body = {"message": "You are being rate limited.", "retry_after": told, "global": False}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Said(status=429, body=json.dumps(body).encode(), headers=named)


class Discord(HttpSimulator):
    kind = ChannelKind.DISCORD
    host = "discord.com"
    path = "/api/webhooks/123456789012345678/t0ken-_of-Sixty8"
    most_bytes = 100_000
    kinds = ("application/json", "multipart/form-data")
    ok = Said(body=STORED)
    rejected = Said(status=400, body=b'{"message": "Invalid Form Body", "code": 50035}')
    codes: ClassVar = (
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected the stored message"),
    )
    too_fast: ClassVar = tuple(
        Case(said=said, verdict=Verdict.RETRY, rest_s=rest_s)
        for said, rest_s in (
            (limited(1.337, x_ratelimit_reset_after="1.337", retry_after="1"), 1.337),
            (limited(64.57, x_ratelimit_global="true", retry_after="65"), 65.0),
            (limited(6457, retry_after="7"), 7.0),
            (limited(6457, x_ratelimit_reset_after="6.457", retry_after="6457"), 6.457),
            (limited(12.5), 12.5),
            (Said(status=429, body=b"<html>error code: 1015</html>", headers={"retry-after": "120"}), 120.0),
        )
    )
    refused: ClassVar = tuple(
        refusal(status, b'{"message": "%s", "code": %d}' % (word, code), Verdict.PERMANENT)
        for status, word, code in (
            (400, b"Invalid Form Body", 50035),
            (400, b"Cannot send an empty message", 50006),
            (401, b"Invalid Webhook Token", 50027),
            (403, b"Missing Permissions", 50013),
            (404, b"Unknown Webhook", 10015),
        )
    )

    def faults(self, got: Got) -> Iterator[str]:
        if parse_qs(urlsplit(got.path).query).get("wait") != ["true"]:
            yield "wait=true is missing: an answer would say nothing"
        yield from _picture_faults(got)
        body = payload(got)
        if not set(body) <= _KEYS:
            yield f"unknown keys {set(body) - _KEYS}"
        if body.get("allowed_mentions") != {"parse": []}:
            yield "text could mention people"
        if units(body["content"]) > 2000:
            yield "content is too long"
        if not 1 <= len(body["embeds"]) <= 10:
            yield f"{len(body['embeds'])} embeds"
        for embed in body["embeds"]:
            yield from _embed_faults(embed)
        if sum(units(text) for text in _texts(body)) > 6000:
            yield "more than 6,000 characters in all embeds"

    def text(self, got: Got) -> str:
        body = payload(got)
        return "\n".join([body["content"], *_texts(body)]).replace("\\_", "_")


def payload(got: Got) -> dict[str, Any]:
    return dict(json.loads(read_form(got)["payload_json"].data if is_form(got) else got.body))


def _picture_faults(got: Got) -> Iterator[str]:
    shown = [embed.get("image", {}).get("url") for embed in payload(got)["embeds"]]
    if not is_form(got):
        yield from (f"image {url}" for url in shown if url)
        return
    form = read_form(got)
    if set(form) != {"payload_json", "files[0]"}:
        yield f"form fields {sorted(form)}"
    picture = form["files[0]"]
    if shown != [f"attachment://{picture.filename}"]:
        yield f"{shown} are not {picture.filename}"
    if picture.kind != "image/png" or not picture.data.startswith(b"\x89PNG"):
        yield f"a picture of {picture.kind}"


def units(text: str) -> int:
    """The stricter of the two ways to count characters."""
    return len(text.encode("utf-16-le")) // 2


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    for embed in body["embeds"]:
        yield embed["title"]
        yield embed["description"]
        for field in embed["fields"]:
            yield from (field["name"], field["value"])


def _embed_faults(embed: Mapping[str, Any]) -> Iterator[str]:
    if not set(embed) <= _EMBED_KEYS:
        yield f"unknown keys {set(embed) - _EMBED_KEYS}"
    if not 0 <= embed["color"] <= 0xFFFFFF:
        yield f"color is {embed['color']}"
    bounded = [("title", embed["title"], 256), ("description", embed["description"], 4096)]
    for field in embed["fields"]:
        bounded += [("field's name", field["name"], 256), ("field's value", field["value"], 1024)]
    for name, text, limit in bounded:
        if not text.strip("\u200b \n") or units(text) > limit:
            yield f"{name} has {units(text)} of 1 to {limit} characters"
    if len(embed["fields"]) > 25:
        yield f"{len(embed['fields'])} fields"
