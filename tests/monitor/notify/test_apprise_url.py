"""Channels through apprise: known URLs only, no secret shown, and a plain word where it is not installed."""

from __future__ import annotations

import pytest

from rlvitals_monitor.notify import apprise_url
from rlvitals_monitor.notify.channel import ChannelError, ChannelKind
from rlvitals_monitor.notify.channel_file import make_channel

URL = "pover://u5erkeyu5erkeyu5erkeyu5erkey01@t0kent0kent0kent0kent0kent0k01"


def test_an_address_that_apprise_does_not_know_is_refused_and_not_shown() -> None:
    pytest.importorskip("apprise", reason="APPRISE IS NOT TRIED: it is not installed")
    with pytest.raises(ChannelError, match="expected one that apprise knows") as refused:
        make_channel("rest", ChannelKind.APPRISE, "pigeon://s3cr3t-coop-0001")
    assert "s3cr3t" not in str(refused.value)


def test_of_an_address_only_its_scheme_is_shown() -> None:
    pytest.importorskip("apprise", reason="APPRISE IS NOT TRIED: it is not installed")
    channel = make_channel("rest", ChannelKind.APPRISE, URL)
    assert (channel.host, channel.gap_s) == ("pover", apprise_url.GAP_S)
    assert "t0ken" not in repr(channel)
    assert channel.redact("no user u5erkeyu5erkeyu5erkeyu5erkey01") == "no user ***"


def test_without_apprise_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apprise_url, "import_module", _absent)
    with pytest.raises(ChannelError, match=r"pip install 'rlvitals\[apprise\]'"):
        make_channel("rest", ChannelKind.APPRISE, URL)


def _absent(name: str) -> object:
    raise ImportError(name)
