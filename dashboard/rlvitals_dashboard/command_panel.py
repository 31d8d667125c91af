"""Commands as people see them: what waits for a decision, and what a run can be asked for."""

from __future__ import annotations

from collections.abc import Iterator

from dash import dcc, html

from rlvitals.contract.alert import Alert
from rlvitals.contract.command import ARGUMENT_KINDS, CommandKind, Knob
from rlvitals.contract.steering import SteeredView
from rlvitals.contract.view import CommandView, RunView
from rlvitals_dashboard.alert_panel import evidence
from rlvitals_dashboard.asking import ask_once, do, say, say_number, subject_of
from rlvitals_dashboard.components import LONGEST_NAME, Component, folded, mark, named, visible, when
from rlvitals_dashboard.language import counted, phrase, t, woven
from rlvitals_dashboard.theme import COMMAND_STATES, SEVERITIES
from rlvitals_dashboard.words import number, plural

KINDS = {
    CommandKind.PAUSE: phrase("Pause training"),
    CommandKind.RESUME: phrase("Resume training"),
    CommandKind.STOP: phrase("Stop training"),
    CommandKind.CHECKPOINT: phrase("Save a checkpoint"),
    CommandKind.SET_KL_COEF: phrase("Set the KL coefficient"),
    CommandKind.SCALE_LR: phrase("Scale the learning rate"),
    CommandKind.SET_KNOB: phrase("Set a knob"),
}

CONSEQUENCES = {
    CommandKind.PAUSE: phrase("At its next step boundary the trainer waits on all ranks, for a limited time."),
    CommandKind.RESUME: phrase("The trainer goes on with its next step."),
    CommandKind.STOP: phrase(
        "At its next step boundary the trainer ends the run in good order. This cannot be undone."
    ),
    CommandKind.CHECKPOINT: phrase("At its next step boundary the trainer saves a checkpoint and goes on."),
    CommandKind.SET_KL_COEF: phrase(
        "At its next step boundary the trainer uses this KL coefficient on all ranks."
    ),
    CommandKind.SCALE_LR: phrase(
        "At its next step boundary the trainer multiplies its learning rate by this factor."
    ),
    CommandKind.SET_KNOB: phrase("At its next step boundary the trainer sets this knob on all ranks."),
}

_ARGUMENTS = {
    CommandKind.SET_KL_COEF: phrase("New value"),
    CommandKind.SCALE_LR: phrase("Factor"),
    CommandKind.PAUSE: phrase("At most, in seconds"),
}


def title(command: CommandView) -> list[Component]:
    """What it asks for, in the words of a button."""
    return (
        woven("Set {knob}", knob=visible(command.knob, LONGEST_NAME)) if command.knob else [t(KINDS[command.kind])]
    )


def decision(command: CommandView, run: RunView, *, alert: Alert | None = None, href: str = "") -> Component:
    """A proposed command: why, on what evidence, what it would do, its argument to edit, approve and deny.

    ``href`` leads to the run, where the card stands elsewhere than on its page.
    """
    where = dcc.Link(named(run), href=href, className="whose") if href else None
    return html.Article(
        [
            html.Header([mark(COMMAND_STATES[command.state]), html.Strong(title(command)), where]),
            html.P(visible(command.why, 400), className="summary") if command.why else None,
            _grounds(alert),
            html.P(list(_change(command, run)), className="change"),
            _voices(command),
            html.Div(
                [
                    ask_once(t("Approve"), t(CONSEQUENCES[command.kind]), _approval(command), tone="primary"),
                    ask_once(t("Deny"), t("The proposal ends, and the run goes on as it is."), _denial(command)),
                    html.Span(
                        woven("expires {moment}", moment=when(command.expires_at)),
                        className="muted expiry",
                    ),
                ],
                className="buttons",
            ),
        ],
        className="decision",
    )


def _grounds(alert: Alert | None) -> Component:
    if alert is None:
        return None
    look = SEVERITIES[alert.severity]
    return html.P(
        [mark(look), html.Strong(alert.rule), " ", *evidence(alert)], className=f"grounds tone-{look.tone}"
    )


def _within(words: str) -> str:
    """As it stands within a sentence."""
    return words[:1].lower() + words[1:]


def _voices(command: CommandView) -> Component:
    """How far a decision of two is."""
    if command.persons < 2:
        return None
    named = [voice for voice in command.voices if voice.named]
    said = [piece for voice in named for piece in (" ", *visible(voice.who, LONGEST_NAME), ",")]
    so_far = woven("Approved by{said}. ", said=said[:-1]) if said else []
    unnamed = len(command.voices) - len(named)
    by_link = (
        counted(
            unnamed,
            " {count} voice without a name does not count.",
            " {count} voices without a name do not count.",
        )
        if unnamed
        else ""
    )
    needed = t(
        "{count} of {persons} different people have approved it.", count=len(named), persons=command.persons
    )
    return html.P([*so_far, needed, by_link], className="voices")


def _change(command: CommandView, run: RunView) -> Iterator[Component]:
    if command.kind is CommandKind.SET_KL_COEF:
        yield from woven(
            "From {before} to {after}",
            before=html.B(number(run.kl_coef)),
            after=html.B(number(rounded(command))),
        )
    elif command.kind is CommandKind.SET_KNOB:
        yield from woven("To {value}", value=html.B(number(rounded(command))))
    elif command.kind is CommandKind.SCALE_LR:
        yield from woven("Times {factor}", factor=html.B(number(rounded(command))))
    elif command.kind is CommandKind.PAUSE and command.argument is not None:
        yield from woven("For at most {seconds} s", seconds=html.B(number(command.argument)))


def _approval(command: CommandView) -> Component:
    bounds = command.bounds
    hint = t("allowed {low} to {high}", low=number(bounds.low), high=number(bounds.high)) if bounds else ""
    field = say_number(
        "approve",
        command.id,
        t(_ARGUMENTS.get(command.kind, phrase("Value"))),
        rounded(command),
        low=bounds.low if bounds else None,
        high=bounds.high if bounds else None,
        hint=hint,
    )
    needed = command.kind in ARGUMENT_KINDS
    return html.Div([field if needed else None, do(t("Yes, approve"), "approve", command.id)])


def _denial(command: CommandView) -> Component:
    return html.Div([say("deny", command.id, "reason", t("Why")), do(t("Yes, deny"), "deny", command.id)])


def rounded(command: CommandView) -> float | None:
    """The proposal with as many digits as a person can judge, unless that would leave the bounds."""
    if command.argument is None:
        return None
    short = float(f"{command.argument:.3g}")
    return short if command.bounds is None or command.bounds.allow(short) else command.argument


def own_commands(run: RunView) -> Component:
    """What this run can be asked for, each behind one question; what it cannot do, with its reason."""
    kinds = [kind for kind in KINDS if kind is not CommandKind.SET_KNOB]
    reasons = {kind: run.capabilities.get(kind.value, t("the run did not say that it can")) for kind in kinds}
    able = [_own(run, kind) for kind in kinds if not reasons[kind]]
    able += [_own_knob(run, name, knob) for name, knob in run.knobs.items()]
    unable = [html.Li([html.Span(t(KINDS[k])), html.Span(visible(why, 300))]) for k, why in reasons.items() if why]
    cannot = folded(
        t("{things} that it cannot do", things=plural(len(unable), "thing")), html.Ul(unable, className="reasons")
    )
    return [html.Div(able, className="buttons own") if able else None, cannot if unable else None]


def steered_by(steered: SteeredView) -> Component:
    """Which KL policy is at the wheel, and what it said last; nothing where none is."""
    if steered.choice is None:
        return None
    step = t("at step {step}", step=steered.step) if steered.step is not None else t("no step yet")
    wish = t("held") if steered.value is None else t("asked for {value}", value=number(steered.value))
    said = [html.B(f"{steered.why}: "), *visible(steered.reason, 300)] if steered.why else []
    words = woven(
        "Steered by {kl_policy}: {wish}, {step}. {said}",
        kl_policy=html.B(visible(steered.choice.kl_policy, 40)),
        wish=wish,
        step=step,
        said=said,
    )
    return html.P([*words, " ", *visible(steered.stopped, 300)], className="steered")


def _own(run: RunView, kind: CommandKind) -> Component:
    subject = subject_of(kind.value, run.id)
    field: Component = None
    if kind is CommandKind.SET_KL_COEF:
        field = say_number(
            "own", subject, t(_ARGUMENTS[kind]), None, hint=t("now {kl_coef}", kl_coef=number(run.kl_coef))
        )
    elif kind is CommandKind.SCALE_LR:
        field = say_number("own", subject, t(_ARGUMENTS[kind]), None, hint=t("1 is the trainer's own schedule"))
    elif kind is CommandKind.PAUSE:
        field = say_number("own", subject, t(_ARGUMENTS[kind]), 600, low=1)
    tone = "danger" if kind is CommandKind.STOP else "primary"
    yes = do(t("Yes: {deed}", deed=_within(t(KINDS[kind]))), "own", subject, tone=tone)
    return ask_once(
        t(KINDS[kind]), t(CONSEQUENCES[kind]), html.Div([field, say("own", subject, "why", t("Why")), yes])
    )


def _own_knob(run: RunView, name: str, knob: Knob) -> Component:
    kind = CommandKind.SET_KNOB
    subject = subject_of(kind.value, run.id, name)
    hint = t("allowed {low} to {high}", low=number(knob.low), high=number(knob.high))
    if knob.value is not None:
        hint = t("yours {value}, {hint}", value=number(knob.value), hint=hint)
    if knob.max_change is not None:
        hint += t(", by at most {max_change} at once", max_change=number(knob.max_change))
    field = say_number("own", subject, t("New value"), None, low=knob.low, high=knob.high, hint=hint)
    act = html.Div([field, say("own", subject, "why", t("Why")), do(t("Yes: set it"), "own", subject)])
    return ask_once(woven("Set {name}", name=visible(name, 40)), t(CONSEQUENCES[kind]), act)
