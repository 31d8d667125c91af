"""A body of fields and files, as browsers send a form: the same content is the same bytes at every attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    name: str
    kind: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """``kind`` is its content-type."""

    body: bytes
    kind: str


def form(fields: Mapping[str, str], files: Mapping[str, Attachment], id: str) -> Form:
    """``id`` makes the boundary, which must be in none of the parts."""
    kind = f"multipart/form-data; boundary={hashlib.sha256(id.encode()).hexdigest()}"
    request = httpx2.Request(
        "POST",
        "https://unused.invalid/",
        headers={"content-type": kind},
        data=dict(fields),
        files={name: (file.name, file.data, file.kind) for name, file in files.items()},
    )
    return Form(body=request.read(), kind=kind)
