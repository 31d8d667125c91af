"""Which addresses messages may go to: resolved once, judged, and the connection is made to what was judged.

A name that resolves to the local network would let whoever writes a channel reach services that only trust their
neighbours; a name that is resolved twice may answer differently the second time.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

MOST_ADDRESSES = 4


class AddressRefused(Exception):
    """The host resolves to where messages may not go."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The host's addresses in the system's order. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]).split("%", 1)[0] for entry in found))


def allowed_addresses(host: str, port: int, *, allow_private: bool, resolver: Resolve = resolve) -> list[str]:
    """Raises `AddressRefused` if any address is out of bounds: a mixed answer is an attempt to slip one in."""
    addresses = list(resolver(host, port))
    if not addresses:
        raise AddressRefused(f"{host} has no address")
    for address in addresses:
        kind = forbidden_kind(address, allow_private=allow_private)
        if kind:
            raise AddressRefused(f"{host} is a {kind} address{_HINT if kind in _LOCAL else ''}")
    return addresses[:MOST_ADDRESSES]


def forbidden_kind(address: str, *, allow_private: bool) -> str:
    """Why this address may not be spoken to; an empty string if it may."""
    ip = _inner(ipaddress.ip_address(address))
    if ip.is_multicast or ip.is_unspecified:
        return "multicast or unspecified"
    if ip.is_loopback:
        return "" if allow_private else "loopback"
    if ip.is_link_local:
        return "" if allow_private else "link-local"
    if not ip.is_global:
        return "" if allow_private else "private"
    return ""


_LOCAL = frozenset({"loopback", "link-local", "private"})
_HINT = ", which a channel may use only with allow_private"
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def _inner(ip: IpAddress) -> IpAddress:
    """The IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    teredo = ip.teredo
    return ip.ipv4_mapped or ip.sixtofour or (teredo[1] if teredo else None) or ip
