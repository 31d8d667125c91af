"""Providers at the wire: each checks a request as strictly as the real one, and answers as that one documents.

A new one is a module here with a subclass of `HttpSimulator`, listed in `simulators.py`. What a provider would not
take (`faults`) is answered with `rejected`, so that the test of the good case fails with the provider's own word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, Protocol

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import Certificate, Got, Provider, Said

PRIVATE_ADDRESS = "169.254.169.254"
SILENCE_S = 0.2
PATIENCE_S = 10.0
"""For a provider that does answer, though the machine is busy."""


class Behaviour(str, Enum):
    OK = "ok"
    TOO_FAST = "429 Retry-After"
    CODE = "200, error code"
    REFUSED = "4xx"
    BROKEN = "5xx"
    SILENT = "time-out"
    UNTRUSTED = "TLS failure"
    REDIRECT = "redirect to private"
    PRIVATE = "private address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One documented answer, and what must come of it. ``words`` are in what people are shown."""

    said: Said
    verdict: Verdict
    rest_s: float | None = None
    words: str = ""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A provider that runs: the channel to it, where its name leads, and what it found wrong so far."""

    channel: Channel
    address: str = "127.0.0.1"
    faults: list[str] = field(default_factory=list)
    took: list[str] = field(default_factory=list)
    """The texts of the messages that were taken, as a reader would see them."""
    thief: list[Got] = field(default_factory=list)

    def resolve(self, host: str, port: int) -> list[str]:
        return [self.address]


class Simulator(Protocol):
    @property
    def kind(self) -> ChannelKind: ...

    @property
    def active(self) -> Sequence[str]:
        """What this provider would act on in a text: no message may hold it, whatever a run is called."""
        ...

    def cases(self, behaviour: Behaviour) -> Sequence[Case]:
        """Documented answers of this behaviour; none where the provider does not have it."""
        ...

    def running(
        self, behaviour: Behaviour, case: Case, certificate: Certificate | None
    ) -> AbstractContextManager[Stage]: ...


class HttpSimulator:
    """A provider that takes one POST. Subclasses say what they would refuse, and in which words."""

    kind: ClassVar[ChannelKind]
    host: ClassVar[str]
    path: ClassVar[str]
    """With the query, if the address has one."""
    paths: ClassVar[Sequence[str]] = ()
    """Others that it knows."""
    secret: ClassVar[str] = ""
    options: ClassVar[Mapping[str, str]] = {}
    most_bytes: ClassVar[int]
    active: ClassVar[Sequence[str]] = ()
    kinds: ClassVar[Sequence[str]] = ("application/json",)
    ok: ClassVar[Said] = Said()
    rejected: ClassVar[Said] = Said(status=400, body=b"invalid request")
    too_fast: ClassVar[Sequence[Case]] = (
        Case(said=Said(status=429, body=b"slow", headers={"retry-after": "7"}), verdict=Verdict.RETRY, rest_s=7.0),
    )
    codes: ClassVar[Sequence[Case]] = ()
    """HTTP 200 whose body says that it failed."""
    refused: ClassVar[Sequence[Case]] = (
        Case(said=Said(status=404, body=b"no such hook"), verdict=Verdict.PERMANENT, words="no such hook"),
    )

    def faults(self, got: Got) -> Iterator[str]:
        """What the real provider would not take of this request, each in words."""
        raise NotImplementedError

    def text(self, got: Got) -> str:
        """What a reader sees of it, with all that the provider would act on but our own link."""
        raise NotImplementedError

    def cases(self, behaviour: Behaviour) -> Sequence[Case]:
        retry, permanent = Verdict.RETRY, Verdict.PERMANENT
        known: Mapping[Behaviour, Sequence[Case]] = {
            Behaviour.OK: [Case(said=self.ok, verdict=Verdict.DELIVERED)],
            Behaviour.TOO_FAST: self.too_fast,
            Behaviour.CODE: self.codes,
            Behaviour.REFUSED: self.refused,
            Behaviour.BROKEN: [
                Case(said=Said(status=500, body=b"oops"), verdict=retry, words="HTTP 500: oops"),
                Case(said=Said(status=502, body=b"<html>bad gateway</html>"), verdict=retry, words="HTTP 502"),
                Case(said=Said(status=503, body=b"", headers={"retry-after": "30"}), verdict=retry, rest_s=30.0),
            ],
            Behaviour.SILENT: [Case(said=Said(hangs=True), verdict=retry, words="no answer within")],
            Behaviour.UNTRUSTED: [Case(said=self.ok, verdict=retry, words="CERTIFICATE_VERIFY_FAILED")],
            Behaviour.REDIRECT: [
                Case(said=Said(status=s), verdict=permanent, words="redirect") for s in (302, 307)
            ],
            Behaviour.PRIVATE: [Case(said=self.ok, verdict=permanent, words="link-local address")],
        }
        return known[behaviour]

    @contextmanager
    def running(self, behaviour: Behaviour, case: Case, certificate: Certificate | None) -> Iterator[Stage]:
        with ExitStack() as stack:
            thief = stack.enter_context(Provider().running())
            said = case.said
            if behaviour is Behaviour.REDIRECT:
                said = Said(status=said.status, headers={"location": thief.url})
            faults: list[str] = []
            took: list[str] = []
            provider = Provider(said, check=lambda got: self._checked(got, faults, took), certificate=certificate)
            stack.enter_context(provider.running())
            private = behaviour is Behaviour.PRIVATE
            yield Stage(
                channel=replace(
                    self.channel(provider.port, tls=bool(certificate) or private, private=not private),
                    timeout_s=SILENCE_S if behaviour is Behaviour.SILENT else PATIENCE_S,
                ),
                address=PRIVATE_ADDRESS if private else "127.0.0.1",
                faults=faults,
                took=took,
                thief=thief.got,
            )

    def channel(self, port: int, *, tls: bool, private: bool) -> Channel:
        return Channel(
            name="team",
            kind=self.kind,
            url=f"{'https' if tls else 'http'}://{self.host}:{port}{self.path}",
            secret=self.secret,
            options=self.options,
            allow_private=private,
        )

    def _checked(self, got: Got, faults: list[str], took: list[str]) -> Said | None:
        found = [*self._outside(got), *self.faults(got)]
        faults += found
        if found:
            return self.rejected
        took.append(self.text(got))
        return None

    def _outside(self, got: Got) -> Iterator[str]:
        if not got.path.startswith((self.path, *self.paths)):
            yield f"path is {got.path}"
        if got.headers.get("host", "").rsplit(":", 1)[0] != self.host:
            yield f"host is {got.headers.get('host')}"
        if got.headers.get("content-type", "").split(";")[0] not in self.kinds:
            yield f"content-type is {got.headers.get('content-type')}"
        if len(got.body) > self.most_bytes:
            yield f"body has {len(got.body)} bytes of {self.most_bytes}"
        if self._is_text(got):
            try:
                got.body.decode("utf-8")
            except UnicodeDecodeError as error:
                yield f"body is not UTF-8: {error}"

    def _is_text(self, got: Got) -> bool:
        return got.headers.get("content-type", "").split(";")[0] == "application/json"


def refusal(status: int, body: bytes, verdict: Verdict, *, rest_s: float | None = None, **headers: str) -> Case:
    """An answer whose own words people are shown."""
    words = body.decode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Case(said=Said(status=status, body=body, headers=named), verdict=verdict, rest_s=rest_s, words=words)


__all__ = ["Behaviour", "Case", "HttpSimulator", "Simulator", "Stage", "refusal"]
