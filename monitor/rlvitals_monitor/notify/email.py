"""Mail by SMTP: over TLS from the start (smtps) or after STARTTLS (smtp), as plain text and as escaped HTML.

- name: mail
  kind: email
  url: smtps://mail.example:465     # or smtp://mail.example:587, which insists on STARTTLS
  user: vitals
  secret: {env: MAIL_PASSWORD}
  from: RL Vitals <vitals@mail.example>
  to: [team@mail.example]

Every attempt carries the same Message-ID, by which mail programs show a message that came twice once; an alert and
its end are one conversation.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr, getaddresses
from html import escape
from urllib.parse import urlsplit

from rlvitals_monitor.notify.address import Resolve, allowed_addresses
from rlvitals_monitor.notify.channel import Channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.message import Message, Section, as_text
from rlvitals_monitor.notify.notification import Notification
from rlvitals_monitor.notify.parcel import Answer, Verdict, visible
from rlvitals_monitor.notify.picture import HEIGHT, WIDTH, draw

GAP_S = 1.0
OPTIONS = ("from", "to", "user", "tls")
PATIENCE = 3.0
"""Times the channel's time-out that the whole conversation may take: a server that drips may not hold us."""
_PORTS = {"smtps": 465, "smtp": 587}

Said = tuple[int, bytes]


def check(channel: Channel) -> str:
    address, options = urlsplit(channel.url), channel.options
    if address.username or address.password or address.path.strip("/") or address.query:
        return "url: expected smtps://host:465 or smtp://host:587; user and secret are keys of their own"
    if len(_mailboxes(options.get("from", ""))) != 1:
        return "from: expected one address, such as RL Vitals <vitals@mail.example>"
    if not _mailboxes(options.get("to", "")):
        return "to: expected addresses, such as [team@mail.example]"
    if bool(options.get("user")) is not bool(channel.secret):
        return "user, secret: expected both or none"
    tls = options.get("tls", "required")
    if tls not in ("required", "none"):
        return "tls: expected required or none"
    if tls == "none" and (not channel.allow_private or channel.secret or address.scheme == "smtps"):
        return "tls: expected required (none only for smtp, with allow_private and without a secret)"
    return ""


def send(channel: Channel, notification: Notification, now: datetime, resolver: Resolve) -> Answer:
    """Tries once, within its bounds of time. Raises OSError and `AddressRefused`."""
    address = urlsplit(channel.url)
    port = address.port or _PORTS[address.scheme]
    known = allowed_addresses(channel.host, port, allow_private=channel.allow_private, resolver=resolver)
    try:
        with _Session(channel, known).opened(port, implicit=address.scheme == "smtps") as session:
            return _delivered(session, channel, write(channel, notification, now))
    except smtplib.SMTPResponseException as error:
        return _answer((error.smtp_code, _bytes(error.smtp_error)))
    except smtplib.SMTPNotSupportedError as error:
        return Answer(verdict=Verdict.PERMANENT, words=str(error))
    except (TimeoutError, smtplib.SMTPServerDisconnected) as error:
        if isinstance(error, TimeoutError) or isinstance(error.__context__, TimeoutError):
            return Answer(verdict=Verdict.RETRY, words=f"no answer within {channel.timeout_s:g} s")
        raise


def write(channel: Channel, notification: Notification, now: datetime) -> EmailMessage:
    """A header cannot be injected: `compose` leaves no line break, and the policy refuses one."""
    message = compose(notification)
    (sender,) = _mailboxes(channel.options["from"])
    domain = sender[1].rpartition("@")[2]
    mail = EmailMessage(policy=SMTP)
    mail["From"] = formataddr(sender)
    mail["To"] = ", ".join(formataddr(one) for one in _mailboxes(channel.options["to"]))
    mail["Subject"] = message.title
    mail["Date"] = format_datetime(now)
    mail["Message-ID"] = f"<{notification.id}@{domain}>"
    mail["References"] = f"<{_thread(notification)}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    # Python would send short lines in 8 bits, which a server need not take.
    mail.set_content(as_text(message), cte="quoted-printable")
    picture = f"trend-{notification.id}@{domain}" if message.trend is not None else ""
    mail.add_alternative(_html(message, picture), subtype="html", cte="quoted-printable")
    if message.trend is not None:
        _add_picture(mail, draw(message.trend), picture)
    for part in mail.walk():
        if part.is_multipart():
            part.set_boundary(f"rlvitals-{notification.id}-{part.get_content_subtype()}")
    return mail


class _Session(smtplib.SMTP):
    """Connects to an address that was judged, in the host's name: its certificate is checked against the name."""

    def __init__(self, channel: Channel, addresses: Sequence[str]) -> None:
        super().__init__(timeout=channel.timeout_s)
        self._channel, self._addresses, self._implicit = channel, addresses, False
        self._context = ssl.create_default_context()

    @contextmanager
    def opened(self, port: int, *, implicit: bool) -> Iterator[_Session]:
        self._implicit, self._host = implicit, self._channel.host
        guard = threading.Timer(self._channel.timeout_s * PATIENCE, self._cut)
        guard.start()
        try:
            code, words = self.connect(self._channel.host, port)
            if code != 220:
                raise smtplib.SMTPConnectError(code, words)
            self.ehlo_or_helo_if_needed()
            if not implicit and self._channel.options.get("tls") != "none":
                self.starttls(context=self._context)
            if self._channel.secret:
                self.login(self._channel.options["user"], self._channel.secret)
            yield self
        finally:
            guard.cancel()
            self.close()

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        for last, address in ((address == self._addresses[-1], address) for address in self._addresses):
            try:
                plain = socket.create_connection((address, port), timeout)
                return self._context.wrap_socket(plain, server_hostname=host) if self._implicit else plain
            except ConnectionError:
                if last:
                    raise
        raise OSError(f"{host} has no address")

    def _cut(self) -> None:
        if self.sock is not None:
            self.sock.shutdown(socket.SHUT_RDWR)


def _delivered(session: _Session, channel: Channel, mail: EmailMessage) -> Answer:
    (sender,) = _mailboxes(channel.options["from"])
    said = session.mail(sender[1])
    if said[0] != 250:
        return _answer(said)
    refused: list[Said] = []
    recipients = _mailboxes(channel.options["to"])
    for _, recipient in recipients:
        said = session.rcpt(recipient)
        if said[0] not in (250, 251):
            refused.append(said)
    if len(refused) == len(recipients):
        # One that may be taken later is worth another try.
        return _answer(min(refused))
    answer = _answer(session.data(mail.as_bytes()))
    if not refused or answer.verdict is not Verdict.DELIVERED:
        return answer
    told = "; ".join(_words(said) for said in refused)
    return Answer(
        verdict=answer.verdict, words=f"{answer.words} ({len(refused)} recipients refused: {told})"[:400]
    )


def _answer(said: Said) -> Answer:
    if 200 <= said[0] < 300:
        return Answer(verdict=Verdict.DELIVERED, words=_words(said))
    return Answer(verdict=Verdict.PERMANENT if said[0] >= 500 else Verdict.RETRY, words=_words(said))


def _words(said: Said) -> str:
    return f"SMTP {said[0]}: {visible(said[1])}"


def _bytes(words: bytes | str) -> bytes:
    return words if isinstance(words, bytes) else words.encode()


def _mailboxes(text: str) -> list[tuple[str, str]]:
    """(name, address) of each; none at all if one is no plain ASCII address."""
    found = getaddresses([text])
    sound = all(address.isascii() and address.isprintable() and address.find("@") > 0 for _, address in found)
    return [(name, address) for name, address in found if address and " " not in address] if sound else []


def _thread(notification: Notification) -> str:
    """An alert and its end are one conversation; digests are another."""
    return "digests" if notification.run is None else f"alert-{notification.lead.transition.alert.id}"


def _add_picture(mail: EmailMessage, picture: bytes, id: str) -> None:
    html = mail.get_body(("html",))
    if html is not None:
        html.add_related(picture, "image", "png", cid=f"<{id}>", disposition="inline", filename="trend.png")


def _section(section: Section) -> str:
    text = f"<code>{_lines(section.text)}</code>" if section.exact else _lines(section.text)
    return f"<p><b>{escape(section.label)}:</b> {text}</p>"


def _html(message: Message, picture: str) -> str:
    rows = "".join(
        f"<tr><th align=left valign=top>{escape(label)}</th><td>{escape(text)}</td></tr>"
        for label, text in message.facts
    )
    parts = [f"<h3>{escape(message.title)}</h3>", f"<p>{_lines(message.summary)}</p>"]
    parts += [f"<table>{rows}</table>"] if rows else []
    if picture:
        words = next((section.text for section in message.sections if section.pictured), "")
        parts.append(
            f'<p><img src="cid:{escape(picture)}" width="{WIDTH}" height="{HEIGHT}" alt="{escape(words)}"></p>'
        )
    parts += [_section(section) for section in message.sections]
    links = [f'<a href="{escape(link.url)}">{escape(link.text)}</a>' for link in message.links]
    parts += [f"<p>{' | '.join(links)}</p>"] if links else []
    return f"<html><body>{''.join(parts)}</body></html>"


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")
