"""When and how often a channel speaks, as it is written in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlvitals_monitor.notify.channel import Channel, ChannelKind, Channels, Escalation, dead_ends
from rlvitals_monitor.notify.channel_file import load_channels

BEGIN = "channels:\n  - name: team\n    kind: slack\n    url: https://hooks.slack.com/services/x\n"


def read(tmp_path: Path, *lines: str) -> Channels:
    path = tmp_path / "channels.yaml"
    path.write_text(BEGIN + "".join(f"    {line}\n" for line in lines))
    return load_channels(path, environ={})


def test_each_key_is_read_in_its_unit(tmp_path: Path) -> None:
    keys = ("group_wait: 30s", "group_interval: 10m", "repeat: 4h", "budget: 5", "escalate: {to: boss, after: 1d}")
    (team,) = read(tmp_path, *keys)
    assert (team.group_wait_s, team.group_interval_s, team.repeat_s, team.budget) == (30.0, 600.0, 14400.0, 5)
    assert team.escalation == Escalation(to="boss", after_s=86400.0)


def test_people_are_not_flooded_where_nothing_is_said_and_a_machine_hears_all_at_once(tmp_path: Path) -> None:
    (team,) = read(tmp_path)
    machine = load_channels(None, webhook_url="https://example.org/hook").items[0]
    assert (team.group_wait_s, team.group_interval_s, team.repeat_s, team.budget) == (10.0, 300.0, 0.0, 20)
    assert (machine.group_wait_s, machine.group_interval_s, machine.budget) == (0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("repeat: soon", "channels.yaml:5: expected a duration, such as 30s, 10m, 4h or 1d, got 'soon'"),
        ("repeat: 5s", "channels.yaml:5: expected repeat from 60 to 604800 seconds, got '5s'"),
        ("group_wait: 1h", "channels.yaml:5: expected group_wait from 0 to 600 seconds, got '1h'"),
        ("budget: many", "channels.yaml:5: expected a whole number from 0 to 600, got 'many'"),
        ("escalate: {to: boss}", "expected 'after' to be present"),
        ("escalate: {to: a b, after: 5m}", "channels.yaml:5: expected a channel's name, got 'a b'"),
        ("group_waits: 5s", "group_waits"),
    ],
)
def test_a_wrong_one_is_told_with_its_line_and_leaves_the_channel_out(
    tmp_path: Path, line: str, expected: str
) -> None:
    found = read(tmp_path, line)
    assert found.items == ()
    assert expected in found.problems[0]


def test_an_escalation_to_nobody_is_told() -> None:
    def channel(name: str, to: str) -> Channel:
        escalation = Escalation(to=to, after_s=60.0) if to else None
        return Channel(name=name, kind=ChannelKind.WEBHOOK, url="https://a.example/x", escalation=escalation)

    assert dead_ends([channel("a", "b"), channel("b", "")]) == ()
    assert dead_ends([channel("a", "a"), channel("b", "gone")]) == (
        "escalate of a: expected the name of another channel, got a",
        "escalate of b: expected the name of another channel, got gone",
    )
