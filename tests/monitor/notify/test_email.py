"""Mail: what is refused on load, what goes over the wire, and what a server may not make of us."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify import email
from rlvitals_monitor.notify.channel import Channel, ChannelError, ChannelKind
from rlvitals_monitor.notify.channel_file import make_channel
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.parcel import Answer, Verdict
from rlvitals_monitor.notify.post import build_client, send
from tests.monitor.notify.provider import Said
from tests.monitor.notify.providers.email import MailServer, certificate, channel_to, seen, serving
from tests.monitor.planted import NOW, a_transition, later, resolved

NOTE = tell_one(id="msg_1", transition=a_transition(), run=RunInfo(id="r1", name="tiny"), link="https://me/ui")
GOOD = {"from": "RL Vitals <vitals@mail.example>", "to": "team@mail.example,boss@mail.example"}


def sent(server: MailServer, **given: Any) -> Answer:
    with serving(server) as port:
        return email.send(channel_to(port, **given), NOTE, NOW, lambda host, port: ["127.0.0.1"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "https://mail.example"}, "expected smtps://host/… or smtp://host/…"),
        ({"url": "smtp://me:pa55word@mail.example"}, "user and secret are keys of their own"),
        ({"url": "smtp://mail.example/inbox"}, "url: expected smtps://host:465 or smtp://host:587"),
        ({"options": {"to": "team@mail.example"}}, "from: expected one address"),
        ({"options": {**GOOD, "from": "a@x.example, b@x.example"}}, "from: expected one address"),
        ({"options": {**GOOD, "from": "nobody"}}, "from: expected one address"),
        ({"options": {**GOOD, "from": "a@x.example\r\nBcc: b@x.example"}}, "from: expected one address"),
        ({"options": {**GOOD, "to": ""}}, "to: expected addresses"),
        ({"options": {**GOOD, "to": "team@mail.example,people"}}, "to: expected addresses"),
        ({"options": {**GOOD, "to": "队@mail.example"}}, "to: expected addresses"),
        ({"options": {**GOOD, "user": "me"}}, "user, secret: expected both or none"),
        ({"options": GOOD, "secret": "hush hush"}, "user, secret: expected both or none"),
        ({"options": {**GOOD, "tls": "maybe"}}, "tls: expected required or none"),
        ({"options": {**GOOD, "tls": "none"}}, "none only for smtp, with allow_private"),
        (
            {"options": {**GOOD, "tls": "none", "user": "me"}, "secret": "hush hush", "allow_private": True},
            "without a secret",
        ),
    ],
)
def test_a_mailbox_that_cannot_work_is_refused_with_what_was_expected(
    given: dict[str, Any], expected: str
) -> None:
    fields: dict[str, Any] = {"url": "smtp://mail.example:587", "options": GOOD, **given}
    with pytest.raises(ChannelError) as refused:
        make_channel("mail", ChannelKind.EMAIL, **fields)
    assert expected in str(refused.value)
    assert "pa55word" not in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_mailbox_without_a_password_needs_none() -> None:
    channel = make_channel("mail", ChannelKind.EMAIL, "smtps://mail.example", options=GOOD)
    assert (channel.host, channel.gap_s) == ("mail.example", email.GAP_S)


def test_a_server_without_starttls_gets_neither_password_nor_message() -> None:
    server = MailServer(certificate=certificate(), starttls=False)
    answer = sent(server)
    assert answer.verdict is Verdict.PERMANENT
    assert "STARTTLS" in answer.words
    assert (server.took, server.faults) == ([], [])


def test_a_relay_that_knows_no_tls_is_used_only_where_that_was_said() -> None:
    server = MailServer(certificate=certificate(), starttls=False)
    answer = sent(server, secret="", options={**GOOD, "tls": "none"})
    assert answer.verdict is Verdict.DELIVERED
    assert len(server.took) == 1
    assert "AUTH in the clear" not in server.faults


def test_a_recipient_that_is_refused_is_told_while_the_other_gets_the_mail() -> None:
    no = Said(status=550, body=b"5.1.1 no such user")
    server = MailServer(certificate=certificate(), at="RCPT", said=no, once=True)
    answer = sent(server)
    assert answer.verdict is Verdict.DELIVERED
    assert "(1 recipients refused: SMTP 550: 5.1.1 no such user)" in answer.words


def test_the_servers_own_words_are_told_without_control_characters() -> None:
    server = MailServer(certificate=certificate(), at=".", said=Said(status=554, body=b"no\x1b[31m spam please"))
    assert sent(server).words == "SMTP 554: no [31m spam please"


def test_every_attempt_has_one_message_id_and_an_alert_and_its_end_one_conversation() -> None:
    channel = channel_to(587)
    first, again = email.write(channel, NOTE, NOW), email.write(channel, NOTE, later(60))
    end = email.write(
        channel, tell_one(id="msg_2", transition=resolved(a_transition()), run=RunInfo(id="r1")), NOW
    )
    assert first["Message-ID"] == again["Message-ID"] == "<msg_1@mail.example>"
    assert first["References"] == end["References"] == "<alert-a1@mail.example>"
    assert end["Message-ID"] != first["Message-ID"]
    assert first["Auto-Submitted"] == "auto-generated"


def test_chinese_goes_in_seven_bits_and_comes_out_whole() -> None:
    mail = email.write(channel_to(587), replace(NOTE, language=Language.CHINESE), NOW)
    assert mail.as_bytes().isascii()
    text = seen(mail)
    assert "警告：kl_pull_dominates，训练 tiny (r1)" in text
    assert text.count("处理办法") == 2


def test_the_password_is_in_no_answer() -> None:
    server = MailServer(certificate=certificate(), at="AUTH", said=Said(status=535, body=b"bad: correct horse"))
    with serving(server) as port, build_client() as client:
        answer = send(channel_to(port), NOTE, NOW, client, resolver=lambda host, port: ["127.0.0.1"])
    assert answer == Answer(verdict=Verdict.PERMANENT, words="SMTP 535: bad: ***")


def test_a_channel_shows_no_password() -> None:
    assert "horse" not in repr(channel_to(587))
    assert isinstance(channel_to(587), Channel)
