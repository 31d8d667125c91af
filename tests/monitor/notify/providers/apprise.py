"""What apprise's ``json://`` posts to, for one of its hundred ways."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Got, Said
from tests.monitor.notify.providers import Behaviour, Case, HttpSimulator


class Apprise(HttpSimulator):
    kind = ChannelKind.APPRISE
    host = "127.0.0.1"
    path = "/hook/T0KEN-0123456789"
    most_bytes = 64 * 1024

    def cases(self, behaviour: Behaviour) -> Sequence[Case]:
        """All that apprise says of a failure is that it is one, so each is tried again."""
        if behaviour in (Behaviour.CODE, Behaviour.PRIVATE):
            return ()
        if behaviour is Behaviour.OK:
            return [Case(said=self.ok, verdict=Verdict.DELIVERED, words="apprise: sent")]
        status = {
            Behaviour.TOO_FAST: 429,
            Behaviour.REFUSED: 404,
            Behaviour.BROKEN: 500,
            Behaviour.REDIRECT: 307,
        }.get(behaviour, 200)
        said = Said(status=status, hangs=behaviour is Behaviour.SILENT)
        return [Case(said=said, verdict=Verdict.RETRY, words="apprise: not sent")]

    def channel(self, port: int, *, tls: bool, private: bool) -> Channel:
        scheme = "jsons" if tls else "json"
        return Channel(
            name="rest",
            kind=self.kind,
            url=f"{scheme}://{self.host}:{port}{self.path}?rto=0.3&cto=2",
            allow_private=private,
        )

    def faults(self, got: Got) -> Iterator[str]:
        body = json.loads(got.body)
        if not {"version", "title", "message", "type"} <= set(body):
            yield f"keys {sorted(body)}"

    def text(self, got: Got) -> str:
        body = json.loads(got.body)
        return f"{body['title']}\n{body['message']}"
