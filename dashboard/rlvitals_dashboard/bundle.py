"""Our own scripts and styles as one file each: two dozen small ones cost a first visit more than they hold."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import Response

ASSETS = Path(__file__).parent / "assets"
ALONE = ("before-paint.js",)
"""Runs before anything else is there."""
PLACE = "bundle/"
"""Below the dashboard's prefix."""
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """``name`` holds a digest of ``body``, so that a browser may keep it for ever."""

    name: str
    body: bytes
    media_type: str


@cache
def bundle(kind: str) -> Bundle:
    """All of ``kind``, "css" or "js", in the order of their names."""
    files = [path for path in sorted(ASSETS.glob(f"*.{kind}")) if path.name not in ALONE]
    body = b"\n".join(b"/* %s */\n%s" % (path.name.encode(), path.read_bytes()) for path in files)
    return Bundle(name=f"{hashlib.sha256(body).hexdigest()[:16]}.{kind}", body=body, media_type=_TYPES[kind])


def style_tag(prefix: str) -> str:
    return f'<link rel="stylesheet" href="{prefix}{PLACE}{bundle("css").name}">'


def script_tag(prefix: str) -> str:
    return f'<script src="{prefix}{PLACE}{bundle("js").name}"></script>'


def add_bundles(server: FastAPI, prefix: str) -> None:
    async def own(name: str) -> Response:
        for kind in _TYPES:
            made = bundle(kind)
            if made.name == name:
                kept = {"cache-control": "public, max-age=31536000, immutable"}
                return Response(made.body, 200, kept, made.media_type)
        return Response("this version of the dashboard has no such file: load the page anew", 404)

    server.add_api_route(f"{prefix}{PLACE}{{name}}", own, methods=["GET"], include_in_schema=False)
