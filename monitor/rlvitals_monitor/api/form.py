"""A small form, as a browser posts it."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import Request

from rlvitals_monitor.errors import TooLarge

FORM_BYTES_MAX = 8_000
_FIELDS_MAX = 10


async def read_form(request: Request) -> dict[str, str]:
    """The first value of each field. Raises `TooLarge`."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            raise TooLarge(f"expected at most {FORM_BYTES_MAX} bytes")
    try:
        told = parse_qs(body.decode("ascii", "replace"), max_num_fields=_FIELDS_MAX)
    except ValueError:
        raise TooLarge(f"expected at most {_FIELDS_MAX} fields") from None
    return {name: values[0] for name, values in told.items()}
