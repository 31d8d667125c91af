"""Feishu's custom bot with a signing secret, and Lark's, which is the same under another host."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rlvitals_monitor.notify import feishu
from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Case, HttpSimulator, refusal
from tests.monitor.planted import NOW

_TEMPLATES = {"blue", "wathet", "turquoise", "green", "yellow", "orange", "red", "carmine", "violet", "grey"}
_BUSY_S = feishu.rest_s(NOW)


def said(code: int, words: str, verdict: Verdict, rest_s: float | None = None, status: int = 200) -> Case:
    body = json.dumps({"code": code, "msg": words, "data": {}}, ensure_ascii=False).encode()
    return Case(said=Said(status=status, body=body), verdict=verdict, rest_s=rest_s, words=words)


class Feishu(HttpSimulator):
    kind = ChannelKind.FEISHU
    host = "open.feishu.cn"
    path = "/open-apis/bot/v2/hook/0f9d3c2a-1111-4222-8333-444455556666"
    secret = "SxQ8fakeFeishuSecret"
    most_bytes = 20 * 1024
    ok = Said(body=b'{"StatusCode":0,"StatusMessage":"success","code":0,"data":{},"msg":"success"}')
    rejected = Said(body=b'{"code":9499,"msg":"Bad Request","data":{}}')
    codes: ClassVar = (
        said(19021, "sign match fail or timestamp is not within one hour from current time", Verdict.PERMANENT),
        said(19022, "Ip Not Allowed", Verdict.PERMANENT),
        said(19024, "Key Words Not Found", Verdict.PERMANENT),
        said(19001, "param invalid: incoming webhook access token invalid", Verdict.PERMANENT),
        said(19002, "params error, msg_type need", Verdict.PERMANENT),
        said(9499, "Bad Request", Verdict.PERMANENT),
        said(11232, "frequency limited psm[lark.oapi.app_platform_runtime]appID[1500]", Verdict.RETRY, _BUSY_S),
        said(77777, "a code that nobody wrote down", Verdict.RETRY),
        Case(said=Said(body=b"<html>sign in</html>"), verdict=Verdict.RETRY, words="expected JSON with code"),
        Case(said=Said(body=b'{"StatusCode":19021}'), verdict=Verdict.PERMANENT, words="19021"),
    )
    too_fast: ClassVar = (
        refusal(429, b'{"code":11232,"msg":"frequency limited"}', Verdict.RETRY, rest_s=_BUSY_S),
        refusal(429, b'{"code":99991400,"msg":"request trigger"}', Verdict.RETRY, rest_s=9.0, retry_after="9"),
        refusal(429, b"slow", Verdict.RETRY, rest_s=7.0, retry_after="7"),
    )
    refused: ClassVar = (
        refusal(400, b'{"code":9499,"msg":"Bad Request"}', Verdict.PERMANENT),
        refusal(400, b'{"code":19001,"msg":"param invalid"}', Verdict.PERMANENT),
        refusal(404, b"404 page not found", Verdict.PERMANENT),
    )

    def faults(self, got: Got) -> Iterator[str]:
        body = json.loads(got.body)
        moment = body.get("timestamp", "")
        if not moment.isdecimal() or abs(int(moment) - NOW.timestamp()) > 3600:
            yield f"timestamp is {moment!r}"
        digest = hmac.new(f"{moment}\n{self.secret}".encode(), b"", hashlib.sha256).digest()
        if body.get("sign") != base64.b64encode(digest).decode():
            yield "sign match fail"
        if set(body) - {"timestamp", "sign"} != {"msg_type", "card"} or body["msg_type"] != "interactive":
            yield f"keys are {set(body)}"
        header = body["card"]["header"]
        if header["template"] not in _TEMPLATES:
            yield f"template {header['template']}"
        for text in _texts(body["card"]):
            if text["tag"] != "plain_text" or not text["content"]:
                yield f"text is {text}"
        for element in body["card"]["elements"]:
            yield from _element_faults(element)

    def text(self, got: Got) -> str:
        card = json.loads(got.body)["card"]
        buttons = [b for e in card["elements"] for b in e.get("actions", [])]
        return "\n".join([text["content"] for text in _texts(card)] + [button["url"] for button in buttons])


class Lark(Feishu):
    host = "open.larksuite.com"


def _texts(card: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield card["header"]["title"]
    for element in card["elements"]:
        if "text" in element:
            yield element["text"]
        yield from (field["text"] for field in element.get("fields", []))
        yield from (button["text"] for button in element.get("actions", []))


def _element_faults(element: Mapping[str, Any]) -> Iterator[str]:
    if element["tag"] == "div":
        if not element.get("text") and not element.get("fields"):
            yield "a div without text and fields"
    elif element["tag"] == "action":
        for button in element["actions"]:
            if button["tag"] != "button" or not button["url"].startswith("https://"):
                yield f"button {button}"
    else:
        yield f"element {element['tag']}"
