"""Where messages may go."""

from __future__ import annotations

import pytest

from rlvitals_monitor.notify.address import AddressRefused, allowed_addresses, forbidden_kind

LOCAL = [
    ("127.0.0.1", "loopback"),
    ("127.8.8.8", "loopback"),
    ("::1", "loopback"),
    ("10.1.2.3", "private"),
    ("172.16.0.1", "private"),
    ("192.168.1.1", "private"),
    ("100.64.0.1", "private"),
    ("fd00::1", "private"),
    ("169.254.169.254", "link-local"),
    ("fe80::1", "link-local"),
    ("::ffff:169.254.169.254", "link-local"),
    ("::ffff:10.0.0.1", "private"),
    ("64:ff9b::7f00:1", "loopback"),
    ("2002:a00:1::", "private"),
    ("192.0.2.1", "private"),
    ("240.0.0.1", "private"),
]


@pytest.mark.parametrize(("address", "kind"), LOCAL)
def test_addresses_of_the_neighbourhood_need_to_be_allowed(address: str, kind: str) -> None:
    assert forbidden_kind(address, allow_private=False) == kind
    assert forbidden_kind(address, allow_private=True) == ""


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0"])
def test_addresses_of_nobody_or_everybody_are_never_spoken_to(address: str) -> None:
    for allowed in (True, False):
        assert forbidden_kind(address, allow_private=allowed) == "multicast or unspecified"


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_are_free(address: str) -> None:
    assert forbidden_kind(address, allow_private=False) == ""


def test_one_private_address_among_public_ones_refuses_the_host() -> None:
    with pytest.raises(AddressRefused, match=r"hooks\.example is a private address, which .* allow_private"):
        allowed_addresses(
            "hooks.example", 443, allow_private=False, resolver=lambda host, port: ["8.8.8.8", "10.0.0.1"]
        )


def test_a_host_without_any_address_is_refused() -> None:
    with pytest.raises(AddressRefused, match="no address"):
        allowed_addresses("hooks.example", 443, allow_private=True, resolver=lambda host, port: [])
