"""Whether a request came over a network where others could read or change it. Pure."""

from __future__ import annotations

from ipaddress import ip_address


def unsafe_wire(scheme: str, client: str) -> bool:
    """``client``: the address of who asks; one that is none counts as another machine's."""
    return scheme not in ("https", "wss") and not _is_loopback(client)


def _is_loopback(client: str) -> bool:
    try:
        return ip_address(client).is_loopback
    except ValueError:
        return False
