"""A channel's own words: read strictly, in a sandbox, and no fault of theirs costs an alert."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvitals_monitor.notify.channel import Channel, ChannelError, ChannelKind
from rlvitals_monitor.notify.channel_file import load_channels, make_channel
from rlvitals_monitor.notify.compose import compose
from rlvitals_monitor.notify.message import as_text
from rlvitals_monitor.notify.notification import Notification, tell_one
from rlvitals_monitor.notify.template import LINES, OUTPUT_LIMIT, TemplateFault, fill
from tests.monitor.notify.told import a_digest, a_group
from tests.monitor.planted import a_transition, an_alert


def with_template(source: str, note: Notification | None = None) -> Notification:
    note = note or a_group()
    return replace(note, extras=replace(note.extras, template=source))


def test_a_template_says_it_in_its_own_words_under_our_title_and_above_our_links() -> None:
    source = "{{ run.name }}: {{ rule }} {{ value }} > {{ threshold }}\n{% if sample %}{{ sample }}{% endif %}"
    message = compose(with_template(source))
    assert message.summary == "tiny: kl_pull_dominates 3.5 > 1\n1 + 1 = \\xff\\xfe3"
    assert (message.facts, message.sections) == ((), ())
    assert message.title == compose(a_group()).title
    assert message.links == compose(a_group()).links


@pytest.mark.parametrize(
    ("value", "shown"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (None, "missing")]
)
def test_the_four_kinds_of_no_number_are_told_apart(value: float | None, shown: str) -> None:
    note = tell_one(a_transition(an_alert(value=value)), a_group().lead.run, id="m1")
    assert compose(with_template("{{ value }}", note)).summary == shown


def test_a_digest_has_its_counts() -> None:
    source = "{% if is_digest %}{{ firing }} fire{% endif %} {{ sections[0].label }}"
    assert compose(with_template(source, a_digest())).summary == "435 fire run 7 (r7)"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("fine\n{{ run.name", "line 2: "),
        ("{% for %}", "line 1: "),
        ("a\nb\n{{ no_such_thing }}", "line 3: 'no_such_thing' is undefined"),
        ("{{ run.secret }}", "line 1: "),
        ("{{ ''.__class__.__mro__ }}", "line 1: access to attribute '__class__'"),
        ("{{ run.__init__.__globals__ }}", "line 1: "),
        ("{{ 'x' * 1000000000 }}", "line 1: expected no * here"),
        ("{{ 9 ** 9 ** 9 }}", "line 1: expected no ** here"),
        ("{{ 1 / 0 }}", "line 1: division by zero"),
        ("{{ range(10000000000) }}", "line 1: "),
        ("{% include '/etc/passwd' %}", "line 1: "),
        ("x" * 20_000, "line 1: expected at most 10000 characters"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "line 1: expected at most",
        ),
        ("a\n{{ 'x'.ljust(900000000)|length }}", "line 2: expected no call of ljust here"),
        ("{{ '%900000000d' % 1 }}", "line 1: expected no % here"),
        ("{{ 'x'|center(900000000) }}", "line 1: No filter named 'center'"),
        ("{% set x = 'x' %}{% set x = x ~ x %}", "line 1: expected texts, if, for and filters only, got assign"),
        ("{% with x = 'x' %}{{ x }}{% endwith %}", "line 1: expected texts, if, for and filters only, got with"),
        ("{{ range(90000)|join('xxxxxxxxxxx') }}", "line 1: expected no more than 100000 characters"),
        ("{{ range(90000)|join|replace('1', 'xxxxxxxxx') }}", "line 1: expected no more than 100000 characters"),
        ("{{ (range(50000)|list + range(60000)|list)|length }}", "line 1: expected no more than 100000"),
        ("{{ " + "*".join(["9999999999"] * 30) + " }}", "line 1: expected no number beyond 1e+100"),
        ("{% for a in [1] %}" * 30 + "{% endfor %}" * 30, "line 1: expected at most 3 loops in each other"),
        ("{{ " + "-" * 3000 + "1 }}", "line 1: "),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_its_line(source: str, told: str) -> None:
    with pytest.raises(ChannelError) as refused:
        make_channel("team", ChannelKind.WEBHOOK, "https://pager.example/hook", template=source)
    assert f"template of team: {told}" in str(refused.value)


def test_a_template_joins_rounds_and_cuts_as_people_would() -> None:
    source = "{{ ('a' ~ step ~ 'b')|upper }} {{ [1, 2]|join(', ') }} {{ 2.345|round(1) }} {{ rule.split('_')[0] }}"
    assert compose(with_template(source)).summary == "A120B 1, 2 2.3 kl"


def test_each_message_has_its_own_turns() -> None:
    source = "{% for a in range(6000) %}{% endfor %}done"
    assert [fill(source, {}) for _ in range(3)] == ["done"] * 3


def test_a_template_that_fails_on_a_message_is_told_there_and_the_message_has_our_own_words() -> None:
    message = compose(with_template("{{ 1 / (step - 120) }}"))
    assert message.summary == "It pulls."
    assert message.sections[-1].text == "line 1: division by zero"


def test_what_a_name_holds_is_no_template_and_acts_as_nothing() -> None:
    note = a_group("{{ 7 * 7 }} @all https://evil.example \u202e\x1b[31m")
    shown = compose(with_template("{{ run.name }}|{{ rule }}|{{ sample }}", note)).summary
    assert "49" not in shown
    for active in ("@all", "https://evil", "\u202e", "\x1b"):
        assert active not in shown


def test_a_long_result_is_cut() -> None:
    shown = compose(with_template("{% for i in range(10000) %}line {{ i }}\n{% endfor %}")).summary
    assert len(shown.splitlines()) <= LINES
    assert len(shown) <= OUTPUT_LIMIT


@settings(max_examples=60)
@given(st.text(alphabet="{}%# abcrun.x[]()|'\"\n+-*/0", max_size=60))
def test_no_text_raises_anything_but_a_fault(source: str) -> None:
    with suppress(TemplateFault):
        assert isinstance(fill(source, {"run": {"name": "x"}, "a": 1}), str)


def test_the_file_tells_a_wrong_template_with_its_place_and_the_other_channels_work(tmp_path: Path) -> None:
    path = tmp_path / "channels.yaml"
    path.write_text(
        "channels:\n"
        "  - {name: bad, kind: webhook, url: 'https://a.example/', template: '{{ oh'}\n"
        "  - name: good\n    kind: webhook\n    url: https://b.example/\n    samples: false\n    picture: false\n"
        "    template: |\n      {{ summary }}\n      {{ rule }}\n"
    )
    channels = load_channels(path)
    assert [channel.name for channel in channels] == ["good"]
    (good,) = channels
    assert (good.samples, good.picture, good.template) == (False, False, "{{ summary }}\n{{ rule }}\n")
    (problem,) = channels.problems
    assert problem.startswith(f"{path}:2: template of bad: line 1: ")


def test_a_wrong_line_of_a_template_is_told_with_where_the_template_begins(tmp_path: Path) -> None:
    path = tmp_path / "channels.yaml"
    path.write_text(
        "channels:\n  - name: bad\n    kind: webhook\n    url: https://a.example/\n"
        "    template: |\n      fine\n      {{ oh\n"
    )
    (problem,) = load_channels(path).problems
    assert problem.startswith(f"{path}:5: template of bad: line 2: ")


def test_plain_text_of_a_template_goes_out_as_lines() -> None:
    channel = Channel(name="t", kind=ChannelKind.WEBHOOK, url="https://a.example/", template="a\n\nb")
    message = compose(with_template(channel.template))
    assert "\na\nb\n" in as_text(message)
