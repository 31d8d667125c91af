"""One POST at a real provider: what it answers, what it must not get, and what is said when it says nothing."""

from __future__ import annotations

import ssl
from datetime import timedelta
from email.utils import format_datetime

import httpx2
import pytest

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.notification import tell_one
from rlvitals_monitor.notify.parcel import RETRY_AFTER_CAP_S, Answer, Reply, Verdict, retry_after_s
from rlvitals_monitor.notify.post import REPLY_BYTES, send
from tests.monitor.notify.conftest import Opened, channel_to
from tests.monitor.notify.provider import Certificate, Provider, Said
from tests.monitor.notify.told import a_group
from tests.monitor.planted import NOW, a_transition

NOTE = tell_one(id="msg_1", transition=a_transition(), run=RunInfo(id="r1"))


def post(provider: Provider, client: httpx2.Client, **given: object) -> Answer:
    return send(channel_to(provider, **given), NOTE, NOW, client)


@pytest.mark.parametrize(
    ("said", "verdict", "words"),
    [
        (Said(body=b"thanks"), Verdict.DELIVERED, "HTTP 200: thanks"),
        (Said(status=204, body=b""), Verdict.DELIVERED, "HTTP 204"),
        (Said(status=400, body=b"no such event"), Verdict.PERMANENT, "HTTP 400: no such event"),
        (Said(status=401, body=b"bad signature"), Verdict.PERMANENT, "HTTP 401: bad signature"),
        (Said(status=410, body=b""), Verdict.PERMANENT, "HTTP 410"),
        (Said(status=408, body=b""), Verdict.RETRY, "HTTP 408"),
        (Said(status=429, body=b"slow"), Verdict.RETRY, "HTTP 429: slow"),
        (Said(status=500, body=b"oops\n  \x1b[31mnow"), Verdict.RETRY, "HTTP 500: oops [31mnow"),
        (Said(status=503, body=b"\xff\xfe"), Verdict.RETRY, "HTTP 503: \ufffd\ufffd"),
    ],
)
def test_the_answer_is_read_and_repeated_in_the_providers_own_words(
    provide: Opened, client: httpx2.Client, said: Said, verdict: Verdict, words: str
) -> None:
    answer = post(provide(said), client)
    assert (answer.verdict, answer.words) == (verdict, words)


def test_the_request_carries_signature_id_and_json_to_the_whole_path(
    provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    post(provider, client)
    (got,) = provider.got
    assert got.path == "/hook/T0KEN"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["webhook-id"] == "msg_1"
    assert got.headers["webhook-signature"].startswith("v1,")
    assert got.headers["user-agent"].startswith("rlvitals/")


def test_a_redirect_is_never_followed(provide: Opened, client: httpx2.Client) -> None:
    thief = provide()
    answer = post(provide(Said(status=307, headers={"location": thief.url})), client)
    assert answer.verdict is Verdict.PERMANENT
    assert "redirect" in answer.words
    assert thief.got == []


def test_a_provider_that_hangs_is_left_after_the_time_out(provide: Opened, client: httpx2.Client) -> None:
    answer = post(provide(Said(hangs=True)), client, timeout_s=0.2)
    assert (answer.verdict, answer.words) == (Verdict.RETRY, "no answer within 0.2 s")


def test_a_provider_that_drips_its_answer_is_left_too(provide: Opened, client: httpx2.Client) -> None:
    answer = post(provide(Said(drips=True)), client, timeout_s=0.1)
    assert (answer.verdict, answer.words) == (Verdict.RETRY, "no answer within 0.1 s")


@pytest.mark.parametrize(("status", "verdict"), [(200, Verdict.DELIVERED), (400, Verdict.PERMANENT)])
def test_a_body_that_never_comes_changes_nothing_of_the_status(
    provide: Opened, client: httpx2.Client, status: int, verdict: Verdict
) -> None:
    answer = post(provide(Said(status=status, breaks=True)), client, timeout_s=0.1)
    assert (answer.verdict, answer.words) == (verdict, f"HTTP {status}")


def test_where_the_words_count_a_body_that_never_comes_is_no_delivery(
    provide: Opened, client: httpx2.Client
) -> None:
    provider = provide(Said(breaks=True))
    assert post(provider, client, kind=ChannelKind.SLACK, timeout_s=0.1).verdict is not Verdict.DELIVERED


def test_a_provider_that_is_away_is_tried_again(provide: Opened, client: httpx2.Client) -> None:
    with Provider().running() as gone:
        channel = channel_to(gone)
    answer = send(channel, NOTE, NOW, client)
    assert answer.verdict is Verdict.RETRY
    assert "ConnectError" in answer.words


def test_a_name_that_is_not_known_is_tried_again(provide: Opened, client: httpx2.Client) -> None:
    def unknown(host: str, port: int) -> list[str]:
        raise OSError(f"{host} is not known")

    answer = send(channel_to(provide()), NOTE, NOW, client, resolver=unknown)
    assert (answer.verdict, answer.words) == (Verdict.RETRY, "OSError: 127.0.0.1 is not known")


def test_an_endless_reply_is_read_only_to_its_bound(provide: Opened, client: httpx2.Client) -> None:
    answer = post(provide(Said(status=400, body=b"x" * (REPLY_BYTES * 50))), client)
    assert answer.verdict is Verdict.PERMANENT
    assert len(answer.words) < 400


def test_loopback_is_refused_unless_allowed_and_nothing_is_sent(provide: Opened, client: httpx2.Client) -> None:
    provider = provide()
    channel = channel_to(provider, url=provider.url.replace("http:", "https:"), allow_private=False)
    answer = send(channel, NOTE, NOW, client)
    assert answer.verdict is Verdict.PERMANENT
    assert "loopback address" in answer.words
    assert provider.got == []


def test_the_connection_goes_to_the_address_that_was_judged_in_the_hosts_name(
    provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    asked: list[str] = []

    def once(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    url = provider.url.replace("127.0.0.1", "hooks.example")
    answer = send(channel_to(provider, url=url), NOTE, NOW, client, resolver=once)
    assert answer.verdict is Verdict.DELIVERED
    assert asked == ["hooks.example"]
    assert provider.got[0].headers["host"] == url.split("/")[2]


def test_the_next_address_is_tried_when_the_first_takes_no_connection(
    provide: Opened, client: httpx2.Client
) -> None:
    provider = provide()
    answer = send(channel_to(provider), NOTE, NOW, client, resolver=lambda host, port: ["127.0.0.9", "127.0.0.1"])
    assert answer.verdict is Verdict.DELIVERED


@pytest.mark.parametrize(
    ("host", "verdict"), [("hooks.example", Verdict.DELIVERED), ("thief.example", Verdict.RETRY)]
)
def test_a_certificate_is_checked_against_the_hosts_name_though_the_address_is_dialled(
    provide: Opened, certificate: Certificate, host: str, verdict: Verdict
) -> None:
    provider = provide(certificate=certificate)
    url = provider.url.replace("127.0.0.1", host)
    trusting = ssl.create_default_context(cafile=certificate.chain)
    with httpx2.Client(verify=trusting, trust_env=False) as client:
        answer = send(channel_to(provider, url=url), NOTE, NOW, client, resolver=lambda host, port: ["127.0.0.1"])
    assert answer.verdict is verdict
    assert len(provider.got) == (verdict is Verdict.DELIVERED)
    if verdict is Verdict.RETRY:
        assert "CERTIFICATE_VERIFY_FAILED" in answer.words


def test_a_secret_that_the_provider_repeats_is_hidden_in_the_answer(
    provide: Opened, client: httpx2.Client
) -> None:
    answer = post(provide(Said(status=404, body=b"no hook at /hook/T0KEN")), client)
    assert answer.words == "HTTP 404: no hook at ***"


def said_after(header: str) -> float | None:
    return retry_after_s(Reply(status=429, headers={"retry-after": header}, body=b""), NOW)


@pytest.mark.parametrize(
    ("header", "rest_s"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("9999999", RETRY_AFTER_CAP_S),
        ("1e999", RETRY_AFTER_CAP_S),
        ("nan", None),
        ("soon", None),
        ("", None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        ("Mon, 04 May 2026 12:01:00", None),
    ],
)
def test_retry_after_is_read_in_both_forms_and_capped(header: str, rest_s: float | None) -> None:
    assert said_after(header) == rest_s


DISCORD = b'{"type": 0, "id": "1"}'


@pytest.mark.parametrize(
    ("script", "verdict", "pictures"),
    [
        ([Said(body=DISCORD)], Verdict.DELIVERED, [True]),
        ([Said(status=413, body=b"too large"), Said(body=DISCORD)], Verdict.DELIVERED, [True, False]),
        ([Said(status=400, body=b"no"), Said(status=404, body=b"gone")], Verdict.PERMANENT, [True, False]),
        ([Said(status=500, body=b"oops")], Verdict.RETRY, [True]),
    ],
)
def test_a_picture_that_is_refused_costs_no_alert(
    provide: Opened, client: httpx2.Client, script: list[Said], verdict: Verdict, pictures: list[bool]
) -> None:
    provider = provide(*script)
    channel = channel_to(provider, kind=ChannelKind.DISCORD, secret="")
    answer = send(channel, a_group(), NOW, client)
    assert answer.verdict is verdict
    assert [b"\x89PNG" in got.body for got in provider.got] == pictures
    if len(pictures) == 2:
        assert f"(with its picture: HTTP {script[0].status}: " in answer.words


def test_every_attempt_with_a_picture_has_the_same_bytes(provide: Opened, client: httpx2.Client) -> None:
    provider = provide(Said(status=500), Said(body=DISCORD))
    channel = channel_to(provider, kind=ChannelKind.DISCORD, secret="")
    for _ in range(2):
        send(channel, a_group(), NOW, client)
    first, second = provider.got
    assert (first.body, first.headers["content-type"]) == (second.body, second.headers["content-type"])
