"""Channel × behaviour: what each provider checks and documents, at the wire, and what becomes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlvitals.contract.report import RunInfo
from rlvitals_monitor.notify.channel import ChannelKind
from rlvitals_monitor.notify.language import Language
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.parcel import Answer
from rlvitals_monitor.notify.post import build_client, send
from rlvitals_monitor.notify.registry import KINDS
from tests.monitor.notify.provider import Certificate, Got
from tests.monitor.notify.providers import Behaviour, Case, HttpSimulator, Simulator, Stage
from tests.monitor.notify.providers.simulators import SIMULATORS
from tests.monitor.notify.providers.table import PROVIDER_CELL
from tests.monitor.notify.told import SET, a_digest, a_group
from tests.monitor.planted import NOW, a_transition, an_alert, resolved

LINK = "https://vitals.example/ui/run/r1?attempt=t1"
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx2.Client]:
    with build_client() as opened:
        yield opened


def note(name: str = "tiny", **alert: object) -> Notification:
    run = RunInfo(id="r1", name=name, project=name)
    return tell_one(id="msg_1", transition=a_transition(an_alert(**alert)), run=run, link=LINK)


def every_case() -> Iterator[object]:
    for simulator in SIMULATORS:
        for behaviour in Behaviour:
            for i, case in enumerate(simulator.cases(behaviour)):
                words = f"{simulator.kind.value}-{behaviour.value}-{i}".replace(" ", "_")
                yield pytest.param(simulator, behaviour, case, id=words)


def tried(stage: Stage, notification: Notification, client: httpx2.Client) -> Answer:
    return send(stage.channel, notification, NOW, client, resolver=stage.resolve)


def outcome(answer: Answer) -> str:
    return (
        f"{answer.verdict.value} after {answer.rest_s:g} s" if answer.rest_s is not None else answer.verdict.value
    )


@pytest.mark.parametrize(("simulator", "behaviour", "case"), list(every_case()))
def test_what_a_provider_documents_is_understood(
    simulator: Simulator,
    behaviour: Behaviour,
    case: Case,
    client: httpx2.Client,
    certificate: Certificate,
    record_property: Record,
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, behaviour.value, "NOT HANDLED"))
    with simulator.running(behaviour, case, certificate if behaviour is Behaviour.UNTRUSTED else None) as stage:
        answer = tried(stage, note(), client)
    assert stage.faults == []
    assert (answer.verdict, answer.rest_s) == (case.verdict, case.rest_s)
    assert case.words in answer.words
    assert stage.thief == []
    if behaviour in (Behaviour.OK, Behaviour.UNTRUSTED, Behaviour.PRIVATE):
        assert bool(stage.took) is (behaviour is Behaviour.OK)
    record_property(PROVIDER_CELL, (simulator.kind.value, behaviour.value, outcome(answer)))


def delivered(simulator: Simulator, notification: Notification, client: httpx2.Client) -> str:
    """The text that the reader sees, after the provider took it without a complaint."""
    (case,) = simulator.cases(Behaviour.OK)
    with simulator.running(Behaviour.OK, case, None) as stage:
        answer = tried(stage, notification, client)
    assert stage.faults == []
    assert answer.verdict is case.verdict
    (text,) = stage.took
    return text


ALL = pytest.mark.parametrize("simulator", SIMULATORS, ids=lambda one: one.kind.value)


@ALL
def test_a_reader_sees_run_rule_value_threshold_advice_and_link(
    simulator: Simulator, client: httpx2.Client
) -> None:
    text = delivered(simulator, note(value=7.5, threshold=1.25, advice="Lower the coefficient"), client)
    for words in ("tiny", "kl_pull_dominates", "7.5", "1.25", "Lower the coefficient", "vitals.example"):
        assert words in text


@ALL
@pytest.mark.parametrize(
    ("value", "shown"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (None, "missing")]
)
def test_nan_both_infinities_and_a_missing_value_are_told_apart(
    simulator: Simulator, client: httpx2.Client, value: float | None, shown: str
) -> None:
    assert shown in delivered(simulator, note(value=value), client).replace("\\", "")


@ALL
def test_the_end_of_an_alert_is_told_too(simulator: Simulator, client: httpx2.Client) -> None:
    over = tell_one(id="msg_2", transition=resolved(a_transition()), run=RunInfo(id="r1"), link=LINK)
    assert "RESOLVED" in delivered(simulator, over, client)


@ALL
def test_a_group_shows_cause_symptoms_and_links_and_as_much_as_the_channel_takes(
    simulator: Simulator, client: httpx2.Client, record_property: Record
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, "group", "NOT HANDLED"))
    text = delivered(simulator, a_group(), client)
    for words in (
        "kl_pull_dominates",
        "symptom_rule",
        "CRITICAL",
        "Acknowledge",
        "Silence for 1 h",
        SET,
        "/ui/act/",
    ):
        assert words in text.replace("＿", "_")
    if simulator.kind is not ChannelKind.TELEGRAM:
        for words in ("other_rule", "over_rule", "out of balance", "beta", "See the pull", "xff"):
            assert words in text
    record_property(PROVIDER_CELL, (simulator.kind.value, "group", "delivered"))


@ALL
def test_without_a_picture_there_is_the_line_of_signs(
    simulator: Simulator, client: httpx2.Client, record_property: Record
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, "no picture", "NOT HANDLED"))
    group = a_group()
    bare = replace(group, extras=replace(group.extras, draws=False))
    text = delivered(simulator, bare, client)
    for words in ("other_rule", "over_rule", "out of balance", "▁", "×", "↑", "↓", "xff", SET):
        assert words in text
    record_property(PROVIDER_CELL, (simulator.kind.value, "no picture", "delivered"))


@ALL
def test_a_digest_counts_every_change_of_every_run(
    simulator: Simulator, client: httpx2.Client, record_property: Record
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, "digest", "NOT HANDLED"))
    text = delivered(simulator, a_digest(), client)
    for words in ("465 changes", "30 runs", "435 firing, 30 resolved", "run 7", "22 more runs"):
        assert words in text.replace("\\", "")
    record_property(PROVIDER_CELL, (simulator.kind.value, "digest", "delivered"))


@ALL
def test_a_chinese_reader_gets_chinese(
    simulator: Simulator, client: httpx2.Client, record_property: Record
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, "Chinese", "NOT HANDLED"))
    text = delivered(simulator, replace(a_group(), language=Language.CHINESE), client)
    assert "严重" in text
    assert "确认" in text
    record_property(PROVIDER_CELL, (simulator.kind.value, "Chinese", "delivered"))


ACTIVE = ("@everyone", "@here", "@all", "://", "\x1b", "\x00", "\u202e", "\u2066", "\u2028", "\ud800")
"""What no reader anywhere may get from outside; what only one provider acts on, its simulator names."""
OURS = re.compile(r"<?https://vitals\.example/[\w/?=&;.-]*(?:\|[\w. ]*>)?")
"""Our own links, in Slack's brackets too."""
HOSTILE = {
    "mentions": "<!channel> <!here> <@U123> @everyone @here @all <at id=all></at> <@&1> tg://user?id=1",
    "links": "<https://evil.example|click> [click](https://evil.example) https://evil.example ![x](https://evil.example)",
    "markdown": "# big\n> quote\n**b** __u__ ~~s~~ ||spoiler|| `code` ```\nfence\n``` - [x] task | a | b |",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)><b>bold</b></td>&amp;&lt;",
    "ansi": "\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x00\x08"
    "\r\n.\r\nQUIT\r\nBcc: a@b.example",
    "bidi": "safe\u202egnp.exe \u2066x\u2069 \u200f\u200b\u061c \u2028\u2029 \ud800",
    "one long line": "好🙂&<" * 250_000,
    "json": '"}],"msgtype":"text","at":{"isAtAll":true},"x":[{"a":"{{7*7}} ${env:PATH} %s %n',
}


@ALL
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_mentions_links_and_turns_nothing(
    simulator: Simulator, client: httpx2.Client, name: str, record_property: Record
) -> None:
    record_property(PROVIDER_CELL, (simulator.kind.value, "hostile text", "NOT HANDLED"))
    words = HOSTILE[name]
    plain = a_group(words)
    notes = [plain, replace(plain, extras=replace(plain.extras, draws=False)), a_digest(words=words)]
    for told in notes:
        text = OURS.sub("", delivered(simulator, told, client))
        for active in (*ACTIVE, *simulator.active):
            assert active not in text
        assert len(text) < 60_000
    record_property(PROVIDER_CELL, (simulator.kind.value, "hostile text", "delivered"))


HTTP = [one for one in SIMULATORS if isinstance(one, HttpSimulator) and KINDS[one.kind].build is not None]


@settings(max_examples=15, deadline=None)
@given(words=st.text(max_size=400), digest=st.booleans())
@example(words=" \u200b\x00\n", digest=False)
@example(words=" \u200b\x00\n", digest=True)
@pytest.mark.parametrize("simulator", HTTP, ids=lambda one: one.kind.value)
def test_no_text_makes_a_message_that_a_provider_would_not_take(
    simulator: HttpSimulator, words: str, digest: bool
) -> None:
    told = a_digest(words=words) if digest else a_group(words)
    told = replace(told, extras=replace(told.extras, draws=False))
    channel, build = simulator.channel(443, tls=True, private=True), KINDS[simulator.kind].build
    assert build is not None
    parcel = build(channel, told, NOW)
    path = httpx2.URL(channel.url).copy_merge_params(dict(parcel.query)).raw_path.decode()
    got = Got(path=path, headers={"content-type": "application/json", **parcel.headers}, body=parcel.body)
    assert list(simulator.faults(got)) == []
    assert len(got.body) <= simulator.most_bytes


def test_every_kind_of_channel_has_a_simulator() -> None:
    known = {simulator.kind for simulator in SIMULATORS}
    assert known | {ChannelKind.APPRISE} == set(KINDS)
    if ChannelKind.APPRISE not in known:
        pytest.skip("APPRISE IS NOT TRIED: it is not installed")
