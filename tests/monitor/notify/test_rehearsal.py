"""A rule that is test-fired reaches those who would hear of it, and nobody takes it for an alert."""

from __future__ import annotations

from collections.abc import Callable

import httpx2

from rlvitals.contract.alert import Severity
from rlvitals.contract.report import RunInfo
from rlvitals_monitor.matcher import Matcher
from rlvitals_monitor.notify.channel import Channels
from rlvitals_monitor.notify.rehearsal import rehearse
from rlvitals_monitor.rules.loader import load_rules
from tests.monitor.batches import NOW
from tests.monitor.notify.conftest import channel_to
from tests.monitor.notify.provider import Provider, Said

RULE = next(rule for rule in load_rules() if rule.key == "nonfinite/critical")
WARNING = next(rule for rule in load_rules() if rule.severity is Severity.WARNING)


def test_it_reaches_who_would_hear_of_it_and_says_what_it_is(
    provide: Callable[..., Provider], client: httpx2.Client
) -> None:
    math, code = provide(Said(status=200, body=b"thanks")), provide()
    channels = Channels(
        items=(
            channel_to(math, name="math", matchers=(Matcher.read("project=math-*"),)),
            channel_to(code, name="code", matchers=(Matcher.read("project=code"),)),
        )
    )
    told = rehearse(RULE, RunInfo(id="r1", name="tiny", project="math-grpo"), channels, NOW, client)
    assert [(t.channel, t.delivered) for t in told.tests] == [("math", True)]
    assert told.deaf == ("code",)
    assert code.got == []
    said = str(math.got[0].body)
    assert "This is a test of a rule: no run is in trouble." in said
    assert "TEST tiny" in said


def test_a_channel_for_what_is_graver_does_not_hear_of_a_warning(
    provide: Callable[..., Provider], client: httpx2.Client
) -> None:
    pager = provide()
    channels = Channels(items=(channel_to(pager, name="pager", severity=Severity.CRITICAL),))
    assert rehearse(WARNING, None, channels, NOW, client).deaf == ("pager",)
    assert pager.got == []


def test_a_refusal_is_told_in_the_providers_own_words(
    provide: Callable[..., Provider], client: httpx2.Client
) -> None:
    shut = provide(Said(status=404, body=b"no such hook"))
    (test,) = rehearse(RULE, None, Channels(items=(channel_to(shut),)), NOW, client).tests
    assert not test.delivered
    assert "no such hook" in test.answer
