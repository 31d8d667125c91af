"""DingTalk's custom robot with a signing secret."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal
from tests.monitor.planted import NOW

BLOCKED_S = 600.0


def said(code: int, words: str, verdict: Verdict, rest_s: float | None = None) -> Case:
    body = json.dumps({"errcode": code, "errmsg": words}, ensure_ascii=False).encode()
    return Case(said=Said(body=body), verdict=verdict, rest_s=rest_s, words=words)


class DingTalk(HttpSimulator):
    kind = ChannelKind.DINGTALK
    host = "oapi.dingtalk.com"
    path = "/robot/send?access_token=566cc69da782ec33e42541d1c2c0d7c6fake"
    secret = "SEC0f0e1d2c3b4a59687766554433221100fake"
    most_bytes = 20_000
    ok = Said(body=b'{"errcode":0,"errmsg":"ok"}')
    rejected = Said(body=b'{"errcode":310000,"errmsg":"sign not match"}')
    codes: ClassVar = (
        said(310000, "description:机器人发送签名不匹配;solution:请确认签名和生成签名的时间戳", Verdict.PERMANENT),
        said(310000, "keywords not in content", Verdict.PERMANENT),
        said(310000, "invalid timestamp", Verdict.PERMANENT),
        said(310000, "ip 1.2.3.4 not in whitelist", Verdict.PERMANENT),
        said(300001, "token is not exist", Verdict.PERMANENT),
        said(300005, "token is not exist", Verdict.PERMANENT),
        said(400013, "群已被解散", Verdict.PERMANENT),
        said(400101, "access_token不存在", Verdict.PERMANENT),
        said(400102, "机器人已停用", Verdict.PERMANENT),
        said(400105, "不支持的消息类型", Verdict.PERMANENT),
        said(40035, "缺少参数 json", Verdict.PERMANENT),
        said(130101, "send too fast, exceed 20 times per minute", Verdict.RETRY, BLOCKED_S),
        said(410100, "发送速度太快而限流", Verdict.RETRY, BLOCKED_S),
        said(-1, "系统繁忙", Verdict.RETRY),
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected JSON with errcode"),
    )
    refused: ClassVar = (refusal(404, b"no such page", Verdict.PERMANENT),)

    def faults(self, got: Got) -> Iterator[str]:
        query = parse_qs(urlsplit(got.path).query, keep_blank_values=True, strict_parsing=True)
        moment = query.get("timestamp", [""])[0]
        if not moment.isdecimal() or abs(int(moment) / 1000 - NOW.timestamp()) > 3600:
            yield f"timestamp is {moment!r}"
        digest = hmac.new(self.secret.encode(), f"{moment}\n{self.secret}".encode(), hashlib.sha256).digest()
        if query.get("sign") != [base64.b64encode(digest).decode()]:
            yield "sign not match"
        body = json.loads(got.body)
        if set(body) != {"msgtype", "markdown", "at"} or body["msgtype"] != "markdown":
            yield f"keys are {set(body)}"
        if not body["markdown"]["title"] or not body["markdown"]["text"]:
            yield "title or text is empty"
        if body["at"] != {"atMobiles": [], "atUserIds": [], "isAtAll": False}:
            yield "people are mentioned"

    def text(self, got: Got) -> str:
        markdown = json.loads(got.body)["markdown"]
        return f"{markdown['title']}\n{markdown['text']}"
