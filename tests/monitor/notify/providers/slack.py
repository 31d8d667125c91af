"""Slack's incoming webhook."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal

_KEYS = {"text", "blocks", "parse", "link_names", "unfurl_links", "unfurl_media"}


class Slack(HttpSimulator):
    kind = ChannelKind.SLACK
    host = "hooks.slack.com"
    path = "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"
    most_bytes = 100_000
    active: ClassVar[Sequence[str]] = ("<!", "<@", "<#", "<h", "<a", "<s")
    ok = Said(body=b"ok")
    rejected = Said(status=400, body=b"invalid_payload")
    codes: ClassVar = (
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected the body: ok"),
    )
    too_fast: ClassVar = (refusal(429, b"rate_limited", Verdict.RETRY, rest_s=30.0, retry_after="30"),)
    refused: ClassVar = tuple(
        refusal(status, word, Verdict.PERMANENT)
        for status, word in (
            (400, b"invalid_blocks"),
            (403, b"action_prohibited"),
            (403, b"invalid_token"),
            (404, b"no_service"),
            (404, b"channel_not_found"),
            (410, b"channel_is_archived"),
        )
    )

    def faults(self, got: Got) -> Iterator[str]:
        body = json.loads(got.body)
        if not set(body) <= _KEYS:
            yield f"unknown keys {set(body) - _KEYS}"
        if not isinstance(body.get("text"), str) or not body["text"]:
            yield "no text for the preview"
        blocks = body.get("blocks", [])
        if not 1 <= len(blocks) <= 50:
            yield f"{len(blocks)} blocks"
        if sum(len(text["text"]) for text in _texts(body)) > 13_000:
            yield "blocks have more than 13,000 characters"
        for block in blocks:
            yield from _faults_of(block)

    def text(self, got: Got) -> str:
        body = json.loads(got.body)
        return "\n".join([body["text"], *(text["text"] for text in _texts(body))])


def _texts(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for block in body["blocks"]:
        yield from (entry for entry in [block.get("text"), *block.get("fields", [])] if entry)


def _faults_of(block: dict[str, Any]) -> Iterator[str]:
    kind = block["type"]
    if kind == "header":
        yield from _text_faults(block["text"], 150, plain_only=True)
    elif kind == "section":
        fields = block.get("fields", [])
        if not block.get("text") and not fields:
            yield "a section without text and fields"
        if len(fields) > 10:
            yield f"{len(fields)} fields"
        for entry in fields:
            yield from _text_faults(entry, 2000)
        if "text" in block:
            yield from _text_faults(block["text"], 3000)
    else:
        yield f"block of type {kind}"


def _text_faults(entry: dict[str, Any], limit: int, *, plain_only: bool = False) -> Iterator[str]:
    if entry["type"] not in (("plain_text",) if plain_only else ("plain_text", "mrkdwn")):
        yield f"text of type {entry['type']}"
    if not 0 < len(entry["text"]) <= limit:
        yield f"text has {len(entry['text'])} characters of {limit}"
    if "emoji" in entry and entry["type"] != "plain_text":
        yield "emoji is only for plain_text"
    if "verbatim" in entry and entry["type"] != "mrkdwn":
        yield "verbatim is only for mrkdwn"
