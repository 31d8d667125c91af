"""What a person does on any page: each deed is one call of the API in the person's own name, and one answer.

The answer goes to a place of its own: the card that was clicked may be gone before it comes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from time import time
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, dcc, html, set_props
from dash.exceptions import PreventUpdate

from rlvitals.contract.command import CommandKind, CommandState, Policy
from rlvitals.contract.view import CommandView, SilencePurpose, SilenceState, SilenceView
from rlvitals_dashboard import access_deeds, incident_deeds, rule_deeds
from rlvitals_dashboard.api import Api, ApiError
from rlvitals_dashboard.asking import parts_of
from rlvitals_dashboard.channel_panel import OPTIONS, send_list
from rlvitals_dashboard.components import Component, notice, visible, when
from rlvitals_dashboard.language import t, woven
from rlvitals_dashboard.policy_panel import scope_word
from rlvitals_dashboard.said import Said, number_of, words_of
from rlvitals_dashboard.silence_panel import FIELDS, HUSH_S
from rlvitals_dashboard.words import plural

CHANNEL_KEYS = ("name", "kind", "url", "secret", "severity", "language")


def verdict_place() -> Component:
    """Where the answers come; once on every page on which something can be done."""
    return html.Div(
        [
            html.Div(id="verdict", role="status"),
            html.Span(t("Asking …"), className="asking-sign"),
            dcc.Store(id="deed"),
        ],
        id="verdict-place",
    )


def register(app: Dash, api: Api) -> None:
    """A button tells the browser's own script, which writes what is wanted into a store (`register_browser`). Were
    the buttons inputs here, every new card would ask again, and Dash throws away the answer that is under way."""

    @app.callback(
        Output("verdict", "children"),
        Input("deed", "data"),
        running=[(Output("verdict-place", "className"), "at-work", "")],
        prevent_initial_call=True,
    )
    async def act(wanted: Mapping[str, Any] | None) -> Component:
        if not wanted:
            raise PreventUpdate
        # no output: it stands on every page, and one that comes without its input makes Dash ask at once
        set_props("done", {"data": time()})
        try:
            return await DEEDS[wanted["deed"]](api, wanted["subject"], wanted["said"])
        except ApiError as error:
            return notice(error.title, error.detail, tone="critical")


def register_browser(register: Any) -> None:
    """The function is in assets/vitals.js."""
    register(
        ClientsideFunction("vitals", "deed"),
        Input({"type": "do", "deed": ALL, "subject": ALL}, "n_clicks"),
        State({"type": "say", "deed": ALL, "subject": ALL, "name": ALL}, "value"),
        State({"type": "say", "deed": ALL, "subject": ALL, "name": ALL}, "id"),
    )


async def _approve(api: Api, command: str, said: Said) -> Component:
    return _released(await api.approve(command, number_of(said)), t("Approved"))


def _released(command: CommandView, done: str) -> Component:
    """Whether the trainer gets it now, or another person has to approve it as well."""
    if command.state is CommandState.PROPOSED:
        return notice(
            t(
                "{done}. {people} must approve it.",
                done=done,
                people=plural(command.persons, "different person", "different people"),
            )
        )
    return notice(t("{done}. The trainer gets it with its next report.", done=done), tone="good")


async def _deny(api: Api, command: str, said: Said) -> Component:
    await api.deny(command, words_of(said, "reason"))
    return notice(t("Denied."))


async def _own(api: Api, subject: str, said: Said) -> Component:
    kind, run, *knob = parts_of(subject)
    made = await api.ask(run, CommandKind(kind), number_of(said), words_of(said, "why"), "".join(knob))
    return _released(made, t("Asked for"))


async def _acknowledge(api: Api, alert: str, _said: Said) -> Component:
    await api.acknowledge(alert)
    return None


async def _unacknowledge(api: Api, alert: str, _said: Said) -> Component:
    await api.unacknowledge(alert)
    return None


async def _hush(api: Api, alert: str, _said: Said) -> Component:
    made = await api.silence_alert(alert, HUSH_S)
    words = woven("Nobody is told of this rule on this run; it ends {moment}.", moment=when(made.ends_at))
    return notice(t("Silenced."), woven("{words} It stands under Control, Silences.", words=words), tone="good")


async def _silence(api: Api, _subject: str, said: Said) -> Component:
    wish = {
        "match": _matchers(said),
        "lasts_s": float(words_of(said, "lasts") or HUSH_S),
        "why": words_of(said, "why"),
    }
    return _silenced(await api.silence(wish))


async def _maintenance(api: Api, _subject: str, said: Said) -> Component:
    wish: dict[str, Any] = {
        "purpose": SilencePurpose.MAINTENANCE.value,
        "match": _matchers(said),
        "lasts_s": _hours(said),
        "why": words_of(said, "why"),
    }
    starts, cron = words_of(said, "starts"), words_of(said, "cron")
    if starts and starts.lower() != "now":
        wish["starts_at"] = f"{starts.removesuffix('Z').strip().replace(' ', 'T')}Z"
    if cron:
        wish |= {"cron": cron, "zone": words_of(said, "zone") or "UTC"}
    return _silenced(await api.silence(wish))


def _hours(said: Said) -> float | None:
    """In seconds."""
    hours = number_of(said)
    return None if hours is None else hours * 3600.0


def _matchers(said: Said) -> list[str]:
    return [f"{name}={words_of(said, name)}" for name in FIELDS if words_of(said, name)]


def _silenced(made: SilenceView) -> Component:
    if made.state is SilenceState.ACTIVE:
        return notice(
            t("In force."), woven("It ends {moment}.", moment=when(made.now_until or made.ends_at)), tone="good"
        )
    return notice(
        t("Planned."), woven("It begins {moment}.", moment=when(made.next_at or made.starts_at)), tone="good"
    )


async def _end_silence(api: Api, silence: str, _said: Said) -> Component:
    await api.end_silence(silence)
    return notice(t("Ended. Messages go out again."))


async def _choose_policy(api: Api, subject: str, said: Said) -> Component:
    scope, policy = parts_of(subject)
    made = await api.choose_policy(scope, words_of(said, "name"), Policy(policy))
    return notice(
        t("From now on: {policy}.", policy=made.policy.value),
        [
            *woven("For the {scope} {name}.", scope=scope_word(made.scope), name=html.B(visible(made.name, 128))),
            *([" ", *visible(made.note, 400)] if made.note else []),
        ],
        tone="warning" if made.note else "info",
    )


async def _take_policy_back(api: Api, subject: str, _said: Said) -> Component:
    scope, name = parts_of(subject)
    await api.take_policy_back(scope, name)
    return notice(t("Taken back."), t("What the service's own settings say holds again."))


async def _check_audit(api: Api, _subject: str, _said: Said) -> Component:
    told = await api.audit_check()
    if told.fault:
        return notice(t("The audit was changed."), visible(told.fault, 400), tone="critical")
    older = (
        t(" {lines} before the chain began cannot be checked.", lines=plural(told.unchained, "line"))
        if told.unchained
        else ""
    )
    head = woven(
        "Its last digest is {head}: who keeps it can prove later that nothing was cut off.",
        head=html.Code(told.head),
    )
    return notice(t("The chain of {lines} holds.", lines=plural(told.lines, "line")), [*head, older], tone="good")


async def _make_channel(api: Api, _subject: str, said: Said) -> Component:
    keys = (*CHANNEL_KEYS, *OPTIONS.get(words_of(said, "kind"), ()))
    body: dict[str, Any] = {name: words_of(said, name) for name in keys if words_of(said, name)}
    matchers = [one.strip() for one in words_of(said, "match").split(",") if one.strip()]
    await api.make_channel(body | ({"match": matchers} if matchers else {}))
    return notice(t("{channel} is there.", channel=body["name"]), t("Send it a test."), tone="good")


async def _remove_channel(api: Api, channel: str, _said: Said) -> Component:
    await api.remove_channel(channel)
    return notice(t("{channel} is removed.", channel=channel))


async def _show_sends(api: Api, delivery: str, _said: Said) -> Component:
    return notice(t("The provider's answers."), send_list(await api.sends(delivery)))


async def _steer(api: Api, subject: str, said: Said) -> Component:
    scope, kl_policy = parts_of(subject)
    made = await api.steer(scope, words_of(said, "name"), kl_policy, number_of(said))
    tone = "warning" if made.warning else "good"
    words = woven(
        "For the {scope} {name}. {warning}",
        scope=scope_word(made.scope),
        name=html.B(visible(made.name, 128)),
        warning=visible(made.warning, 400),
    )
    return notice(t("From the next step on: {kl_policy}.", kl_policy=made.kl_policy), words, tone=tone)


async def _take_steering_back(api: Api, subject: str, _said: Said) -> Component:
    scope, name = parts_of(subject)
    await api.take_steering_back(scope, name)
    return notice(t("Taken back."))


async def _test_channel(api: Api, channel: str, _said: Said) -> Component:
    told = await api.test_channel(channel)
    answer = html.Q(visible(told.answer, 500)) if told.answer else t("It said nothing.")
    if told.delivered:
        return notice(
            t("{channel} took the test.", channel=channel),
            woven("The provider said: {answer}", answer=answer),
            tone="good",
        )
    return notice(
        t("{channel} did not take the test.", channel=channel),
        woven("The provider said: {answer}", answer=answer),
        tone="critical",
    )


DEEDS: Mapping[str, Callable[[Api, str, Said], Awaitable[Any]]] = {
    "approve": _approve,
    "deny": _deny,
    "own": _own,
    "acknowledge": _acknowledge,
    "unacknowledge": _unacknowledge,
    "hush": _hush,
    "acknowledge-all": incident_deeds.acknowledge_all,
    "hush-all": incident_deeds.hush_all,
    "escalate": incident_deeds.escalate,
    "silence": _silence,
    "maintenance": _maintenance,
    "end-silence": _end_silence,
    "choose-policy": _choose_policy,
    "take-policy-back": _take_policy_back,
    "check-audit": _check_audit,
    "steer": _steer,
    "take-steering-back": _take_steering_back,
    "make-channel": _make_channel,
    "remove-channel": _remove_channel,
    "show-sends": _show_sends,
    "test-channel": _test_channel,
    "test-rule": rule_deeds.test_fire,
    **access_deeds.DEEDS,
}
