"""A Workflows flow "when a Teams webhook request is received", and what Teams takes of an Adaptive Card."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import HttpSimulator, refusal

_RUN_KEYS = {"type", "text", "weight", "size", "color", "isSubtle", "italic"}
_WEIGHTS, _SIZES = {"Default", "Lighter", "Bolder"}, {"Default", "Small", "Medium", "Large", "ExtraLarge"}
_SPACINGS = {"Default", "None", "Small", "Medium", "Large", "ExtraLarge", "Padding"}


class Teams(HttpSimulator):
    kind = ChannelKind.TEAMS
    host = "prod-01.westeurope.logic.azure.com"
    path = "/workflows/0a1b2c/triggers/manual/paths/invoke?api-version=1&sig=S3cr3t5ig"
    most_bytes = 28 * 1024
    ok = Said(status=202, body=b"")
    rejected = Said(status=400, body=b'{"error":{"code":"TriggerInputSchemaMismatch"}}')
    too_fast: ClassVar = (refusal(429, b'{"error":{"code":"429"}}', Verdict.RETRY, rest_s=11.0, retry_after="11"),)
    codes: ClassVar = (
        refusal(
            200,
            b"Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error 429",
            Verdict.RETRY,
        ),
    )
    refused: ClassVar = tuple(
        refusal(status, json.dumps({"error": {"code": code}}).encode(), Verdict.PERMANENT)
        for status, code in (
            (400, "WorkflowTriggerIsNotEnabled"),
            (401, "DirectApiAuthorizationRequired"),
            (403, "AuthorizationFailed"),
            (404, "WorkflowNotFound"),
            (413, "RequestEntityTooLarge"),
        )
    )

    def faults(self, got: Got) -> Iterator[str]:
        body = json.loads(got.body)
        if body.get("type") != "message" or set(body) - {"type", "attachments", "summary"}:
            yield f"not a message but {sorted(body)}"
        (attachment,) = body["attachments"]
        if attachment["contentType"] != "application/vnd.microsoft.card.adaptive":
            yield f"content type {attachment['contentType']}"
        yield from _card_faults(attachment["content"])

    def text(self, got: Got) -> str:
        card = json.loads(got.body)["attachments"][0]["content"]
        lines = ["".join(run["text"] for run in block["inlines"]) for block in card["body"]]
        return "\n".join([*lines, *(f"{act['title']} {act['url']}" for act in card.get("actions", []))])


def _card_faults(card: Mapping[str, Any]) -> Iterator[str]:
    if (card["type"], card["version"]) != ("AdaptiveCard", "1.4"):
        yield f"{card['type']} {card['version']}"
    if "entities" in card.get("msteams", {}):
        yield "somebody is mentioned"
    if not card["body"]:
        yield "an empty card"
    for block in card["body"]:
        if block["type"] != "RichTextBlock" or block.get("spacing", "Default") not in _SPACINGS:
            yield f"block {block['type']} with spacing {block.get('spacing')}"
        for run in block["inlines"]:
            yield from _run_faults(run)
    for action in card.get("actions", []):
        if action["type"] != "Action.OpenUrl" or not action["url"].startswith("https://") or not action["title"]:
            yield f"action {action}"


def _run_faults(run: Mapping[str, Any]) -> Iterator[str]:
    if run["type"] != "TextRun" or set(run) - _RUN_KEYS:
        yield f"{run['type']} with {sorted(run)}"
    if not isinstance(run["text"], str) or not run["text"]:
        yield "a text run without text"
    if run.get("weight", "Default") not in _WEIGHTS or run.get("size", "Default") not in _SIZES:
        yield f"weight {run.get('weight')} and size {run.get('size')}"
