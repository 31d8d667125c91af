"""A mail server on a socket: STARTTLS, AUTH after it only, RFC 5321's lines, and each refusal at its place."""

from __future__ import annotations

import base64
import functools
import os
import socket
import socketserver
import ssl
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from rlvitals_monitor.notify.channel import Channel, ChannelKind
from rlvitals_monitor.notify.parcel import Verdict
from tests.monitor.notify.provider import WAIT_S, Certificate, Said, self_signed
from tests.monitor.notify.providers import PRIVATE_ADDRESS, Behaviour, Case, Stage

HOST = "mail.example"
USER, PASSWORD = "vitals", "correct horse"
SENDER, RECIPIENTS = "vitals@mail.example", ["team@mail.example", "boss@mail.example"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MailCase(Case):
    """``at`` is the command that gets the answer; the empty one is the greeting."""

    at: str = ""


def _case(at: str, status: int, body: bytes, verdict: Verdict) -> MailCase:
    return MailCase(said=Said(status=status, body=body), verdict=verdict, words=body.decode(), at=at)


@dataclass(slots=True, kw_only=True)
class MailServer:
    """What the handler knows and keeps."""

    at: str = ""
    said: Said | None = None
    certificate: Certificate
    implicit: bool = False
    starttls: bool = True
    once: bool = False
    """The case's answer is for its first command only."""
    closing: threading.Event = field(default_factory=threading.Event)
    faults: list[str] = field(default_factory=list)
    took: list[EmailMessage] = field(default_factory=list)


@functools.cache
def certificate() -> Certificate:
    return self_signed(Path(tempfile.mkdtemp(prefix="rlvitals-mail-")), HOST)


class Email:
    kind = ChannelKind.EMAIL
    active: Sequence[str] = ()
    """In HTML alone, whose tags `_Tags` reads."""

    def __init__(self, scheme: str = "smtp") -> None:
        self.scheme = scheme

    def cases(self, behaviour: Behaviour) -> Sequence[Case]:
        retry, permanent = Verdict.RETRY, Verdict.PERMANENT
        refusals = (
            ("AUTH", 535, b"5.7.8 authentication failed"),
            ("MAIL", 550, b"5.7.1 sender refused"),
            ("RCPT", 550, b"5.1.1 no such user"),
            ("DATA", 554, b"5.7.1 no"),
            (".", 552, b"5.3.4 message too big"),
        )
        known: dict[Behaviour, Sequence[Case]] = {
            Behaviour.OK: [_case(".", 250, b"2.0.0 Ok: queued as 4F2", Verdict.DELIVERED)],
            Behaviour.TOO_FAST: [
                _case("", 421, b"4.7.0 too many connections", retry),
                _case("RCPT", 450, b"4.2.0 greylisted", retry),
                _case("MAIL", 452, b"4.3.1 too many messages", retry),
            ],
            Behaviour.REFUSED: [_case(at, code, words, permanent) for at, code, words in refusals],
            Behaviour.BROKEN: [
                _case(".", 451, b"4.3.0 local error", retry),
                MailCase(said=Said(status=0), verdict=retry, words="losed", at="RCPT"),
            ],
            Behaviour.SILENT: [
                MailCase(said=Said(hangs=True), verdict=retry, words="no answer within", at=at) for at in ("", ".")
            ],
            Behaviour.UNTRUSTED: [
                MailCase(said=Said(), verdict=retry, words="CERTIFICATE_VERIFY_FAILED", at="none")
            ],
            Behaviour.PRIVATE: [MailCase(said=Said(), verdict=permanent, words="link-local address", at="none")],
        }
        return known.get(behaviour, ())

    @contextmanager
    def running(self, behaviour: Behaviour, case: Case, _certificate: Certificate | None) -> Iterator[Stage]:
        at = case.at if isinstance(case, MailCase) else "none"
        server = MailServer(at=at, said=case.said, certificate=certificate(), implicit=self.scheme == "smtps")
        private = behaviour is Behaviour.PRIVATE
        with serving(server, trusted=behaviour is not Behaviour.UNTRUSTED) as port:
            stage = Stage(
                channel=channel_to(
                    port,
                    scheme=self.scheme,
                    allow_private=not private,
                    timeout_s=0.2 if behaviour is Behaviour.SILENT else 10.0,
                ),
                address=PRIVATE_ADDRESS if private else "127.0.0.1",
            )
            yield stage
        stage.faults += server.faults
        stage.took += [seen(mail) for mail in server.took]


def channel_to(port: int, scheme: str = "smtp", **given: Any) -> Channel:
    fields: dict[str, Any] = {
        "secret": PASSWORD,
        "allow_private": True,
        "timeout_s": 10.0,
        "options": {"user": USER, "from": f"RL Vitals <{SENDER}>", "to": ",".join(RECIPIENTS)},
    }
    url = f"{scheme}://{HOST}:{port}"
    return Channel(name="mail", kind=ChannelKind.EMAIL, url=url, **{**fields, **given})


def seen(mail: EmailMessage) -> str:
    """Subject, text and HTML source as the reader's program gets them."""
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    return "\n".join([str(mail["subject"]), plain.get_content(), html.get_content()])


@contextmanager
def serving(server: MailServer, *, trusted: bool = True) -> Iterator[int]:
    """The port of a running server, whose certificate is trusted by whoever looks at the system's."""
    before = os.environ.get("SSL_CERT_FILE")
    if trusted:
        os.environ["SSL_CERT_FILE"] = str(server.certificate.chain)
    handler = type("Handler", (_Handler,), {"kept": server})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield int(listening.server_address[1])
        finally:
            server.closing.set()
            listening.shutdown()
            thread.join(WAIT_S)
            os.environ.pop("SSL_CERT_FILE", None)
            if before is not None:
                os.environ["SSL_CERT_FILE"] = before


class _Over(Exception):
    """The conversation ends here."""


class _Handler(socketserver.BaseRequestHandler):
    kept: MailServer

    def handle(self) -> None:
        self.secured = self.authenticated = False
        self.sender, self.recipients = "", list[str]()
        try:
            if self.kept.implicit:
                self._secure()
            else:
                self._listen(self.request)
            self._say("", 220, "mail.example ESMTP")
            while True:
                self._hear(self._line())
        except (_Over, OSError):
            self.request.close()

    def _listen(self, connection: socket.socket) -> None:
        connection.settimeout(WAIT_S)
        self.request = connection
        self.reader = connection.makefile("rb")

    def _secure(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.kept.certificate.chain, self.kept.certificate.key)
        self._listen(context.wrap_socket(self.request, server_side=True))
        self.secured = True

    def _line(self) -> bytes:
        line = self.reader.readline(2000)
        if not line:
            raise _Over
        if not line.endswith(b"\r\n") or b"\r" in line[:-2] or len(line) > 1000:
            self.kept.faults.append(f"line {line[:60]!r}")
        return line[:-2]

    def _say(self, at: str, code: int, text: str) -> bool:
        """Whether it was the good answer: at its place the case's own comes instead."""
        said = self.kept.said if at == self.kept.at else None
        if said is not None and said.hangs:
            self.kept.closing.wait(WAIT_S)
            raise _Over
        if said is not None and said.status == 0:
            raise _Over
        if said is not None:
            code, text = said.status, said.body.decode()
            self.kept.said = None if self.kept.once else said
        self.request.sendall(f"{code} {text}\r\n".encode())
        return code < 400

    def _hear(self, line: bytes) -> None:
        verb = line.split(b" ", 1)[0].upper().decode("latin-1")
        if verb in ("MAIL", "RCPT", "DATA", "AUTH") and not self.secured:
            self.kept.faults.append(f"{verb} in the clear")
        if verb == "EHLO":
            offers = ["mail.example", "SIZE 10000000"]
            offers += [] if self.secured or not self.kept.starttls else ["STARTTLS"]
            offers += ["AUTH PLAIN"] if self.secured else []
            self.request.sendall("".join(f"250-{offer}\r\n" for offer in offers[:-1]).encode())
            self.request.sendall(f"250 {offers[-1]}\r\n".encode())
        elif verb == "STARTTLS":
            self._say("STARTTLS", 220, "go ahead")
            self._secure()
        elif verb == "AUTH":
            self._authenticate(line)
        elif verb in ("MAIL", "RCPT"):
            self._envelope(verb, line.decode("latin-1").split("<", 1)[1].split(">", 1)[0])
        elif verb == "DATA":
            self._data()
        elif verb == "QUIT":
            self._say("QUIT", 221, "bye")
            raise _Over
        else:
            self.kept.faults.append(f"command {line[:60]!r}")
            self._say(verb, 502, "no such command")

    def _authenticate(self, line: bytes) -> None:
        told = base64.b64decode(line.split(b" ")[2]).split(b"\0")
        if told != [b"", USER.encode(), PASSWORD.encode()]:
            self.kept.faults.append(f"AUTH with {told}")
        self.authenticated = self._say("AUTH", 235, "2.7.0 welcome")

    def _envelope(self, verb: str, address: str) -> None:
        if not self.authenticated:
            self.kept.faults.append(f"{verb} without AUTH")
        if not self._say(verb, 250, "2.1.0 Ok"):
            return
        if verb == "MAIL":
            self.sender = address
        else:
            self.recipients.append(address)

    def _data(self) -> None:
        if not self._say("DATA", 354, "end with ."):
            return
        lines: list[bytes] = []
        while (line := self._line()) != b".":
            lines.append(line[1:] if line.startswith(b".") else line)
        raw = b"\r\n".join(lines)
        mail = message_from_bytes(raw, policy=policy.default)
        self.kept.faults += list(_faults(raw, mail, self.sender, self.recipients))
        self.kept.took.append(mail)
        self._say(".", 250, "2.0.0 Ok: queued")


def _faults(raw: bytes, mail: EmailMessage, sender: str, recipients: Sequence[str]) -> Iterator[str]:
    if not raw.isascii():
        yield "8-bit text without 8BITMIME"
    yield from _picture_faults(mail)
    if any(part.defects for part in mail.walk()):
        yield f"defects {[part.defects for part in mail.walk()]}"
    names = [name.lower() for name in mail.keys()]  # noqa: SIM118
    expected = ["from", "to", "subject", "date", "message-id", "references", "auto-submitted"]
    if sorted(names) != sorted([*expected, "mime-version", "content-type"]):
        yield f"headers {names}"
    if [one.addr_spec for one in mail["from"].addresses] != [sender]:
        yield f"from {mail['from']} in an envelope of {sender}"
    if [one.addr_spec for one in mail["to"].addresses] != list(recipients):
        yield f"to {mail['to']} in an envelope of {recipients}"
    if mail.get_content_type() != "multipart/alternative":
        yield mail.get_content_type()
    html = mail.get_body(("html",))
    tags = _Tags()
    tags.feed(html.get_content() if html is not None else "")
    yield from tags.faults


def _picture_faults(mail: EmailMessage) -> Iterator[str]:
    """A picture lies beside the HTML that shows it, and nowhere else."""
    html = mail.get_body(("html",))
    source = html.get_content() if html is not None else ""
    pictures = [part for part in mail.walk() if part.get_content_maintype() == "image"]
    for part in pictures:
        if f'src="cid:{str(part["content-id"]).strip("<>")}"' not in source:
            yield f"nothing shows {part['content-id']}"
        if part.get_content_type() != "image/png" or part.get_content_disposition() != "inline":
            yield f"{part.get_content_type()} {part.get_content_disposition()}"
        if not part.get_content().startswith(b"\x89PNG"):
            yield "no PNG"
    if source.count("<img ") != len(pictures):
        yield f"{source.count('<img ')} images of {len(pictures)}"


class _Tags(HTMLParser):
    """A reader of mail acts on every tag: all must be ours, and the only address that of the service."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag not in {"html", "body", "h3", "p", "b", "table", "tr", "th", "td", "a", "code", "img"}:
            self.faults.append(f"tag {tag}")
        if tag == "a" and not str(given.get("href")).startswith("https://vitals.example/"):
            self.faults.append(f"link to {given.get('href')}")
        if tag == "img" and not str(given.get("src")).startswith("cid:trend-"):
            self.faults.append(f"image from {given.get('src')}")
        if set(given) - {"href", "align", "valign", "src", "width", "height", "alt"}:
            self.faults.append(f"attributes {given}")
