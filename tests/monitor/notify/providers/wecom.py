"""WeCom's group robot: what it counts is bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal

CONTENT_BYTES = 4096


def said(code: int, words: str, verdict: Verdict, rest_s: float | None = None) -> Case:
    body = json.dumps({"errcode": code, "errmsg": words}).encode()
    return Case(said=Said(body=body), verdict=verdict, rest_s=rest_s, words=words)


class WeCom(HttpSimulator):
    kind = ChannelKind.WECOM
    host = "qyapi.weixin.qq.com"
    path = "/cgi-bin/webhook/send?key=693a91f6-7xxx-4bc4-97a0-0ec2sifafake"
    most_bytes = 100_000
    ok = Said(body=b'{"errcode":0,"errmsg":"ok"}')
    rejected = Said(body=b'{"errcode":40058,"errmsg":"invalid Request Parameter"}')
    codes: ClassVar = (
        said(93000, "invalid webhook url, hint: [1604476301_2]", Verdict.PERMANENT),
        said(93004, "机器人被停用", Verdict.PERMANENT),
        said(40008, "invalid message type", Verdict.PERMANENT),
        said(40058, "markdown.content exceed max length 4096. invalid Request Parameter", Verdict.PERMANENT),
        said(44004, "empty content", Verdict.PERMANENT),
        said(45009, "api freq out of limit, hint: [1604476301_3]", Verdict.RETRY, 60.0),
        said(45033, "api concurrent out of limit", Verdict.RETRY, 60.0),
        said(-1, "system busy", Verdict.RETRY),
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected JSON with errcode"),
    )
    refused: ClassVar = (refusal(404, b"no such page", Verdict.PERMANENT),)

    def faults(self, got: Got) -> Iterator[str]:
        body = json.loads(got.body)
        if set(body) != {"msgtype", "markdown"} or body["msgtype"] != "markdown":
            yield f"keys are {set(body)}"
        content = body["markdown"]["content"]
        if not 0 < len(content.encode()) <= CONTENT_BYTES:
            yield f"markdown.content exceed max length {CONTENT_BYTES}: {len(content.encode())}"
        if "<" in content:
            yield "a tag or a mention"

    def text(self, got: Got) -> str:
        return str(json.loads(got.body)["markdown"]["content"])
