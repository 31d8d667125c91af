"""A multipart form as a provider reads it."""

from __future__ import annotations

from dataclasses import dataclass
from email import message_from_bytes, policy

from tests.monitor.notify.provider import Got


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """``filename`` is empty for a plain field."""

    filename: str
    kind: str
    data: bytes


def read_form(got: Got) -> dict[str, Field]:
    """The fields by name; raises ValueError for what is no form."""
    head = f"content-type: {got.headers.get('content-type', '')}\r\n\r\n".encode()
    mail = message_from_bytes(head + got.body, policy=policy.HTTP)
    if mail.get_content_type() != "multipart/form-data" or mail.defects:
        raise ValueError(f"no form: {mail.get_content_type()} {mail.defects}")
    found: dict[str, Field] = {}
    for part in mail.iter_parts():
        name = str(part["content-disposition"].params["name"])
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        found[name] = Field(filename=part.get_filename() or "", kind=part.get_content_type(), data=data)
    return found


def is_form(got: Got) -> bool:
    return got.headers.get("content-type", "").startswith("multipart/form-data")
