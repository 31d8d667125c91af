"""Functions from contract types to Dash components. No request, no callback. React escapes every text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from dash import html

from rlvitals.contract.alert import Truth
from rlvitals.contract.report import Phase
from rlvitals.contract.view import RuleView, RunView, TextView
from rlvitals_dashboard.language import phrase, t
from rlvitals_dashboard.theme import LIGHTS, RUN_STATES, Look
from rlvitals_dashboard.words import number, pieces, plural

Component: TypeAlias = Any

LONGEST_TEXT = 1200
"""Characters of a completion that a card shows."""
LONGEST_NAME = 96

WHY_KEPT = {
    "worst_utf8": phrase("most broken UTF-8"),
    "worst_ratio": phrase("largest importance ratio"),
    "worst_length": phrase("longest"),
    "reservoir": phrase("random sample"),
}


def why_kept(why: str) -> str:
    return t(WHY_KEPT.get(why, phrase("sample")))


def aria(**states: str) -> dict[str, Any]:
    """``aria(hidden="true")`` → the attribute ``aria-hidden``."""
    return {f"aria-{name}": value for name, value in states.items()}


def data(**values: str) -> dict[str, Any]:
    """``data(sort="name")`` → the attribute ``data-sort``, for the browser's own scripts."""
    return {f"data-{name}": value for name, value in values.items()}


def mark(look: Look, *, words: str = "") -> Component:
    """Shape, colour and word: none of them alone carries the meaning."""
    shape = html.Span(look.mark, className="mark", **aria(hidden="true"))
    return html.Span([shape, html.Span(words or look.said)], className=f"badge tone-{look.tone}")


def when(moment: datetime) -> Component:
    """A time that the browser keeps saying as "12 s ago"; the full time is its title."""
    iso = moment.isoformat()
    return html.Time(
        t("{moment} UTC", moment=f"{moment:%Y-%m-%d %H:%M:%S}"), dateTime=iso, className="ago", title=iso
    )


def visible(text: str, limit: int = LONGEST_TEXT) -> list[Component]:
    """Untrusted text with everything that a reader would not see made visible."""
    shown = [
        html.Mark(piece.shown, className="odd", title=piece.name) if piece.name else piece.shown
        for piece in pieces(text[:limit])
    ]
    rest = len(text) - limit
    return [*shown, html.Span(f" … {plural(rest, 'more character')}", className="muted")] if rest > 0 else shown


def named(run: RunView) -> list[Component]:
    return visible(run.name or run.id, LONGEST_NAME)


def fact(label: str, value: Component, hint: str = "") -> Component:
    return html.Div([html.Dt(label), html.Dd(value, title=hint or None)], className="fact")


def notice(title: str, detail: Component = "", *, tone: str = "info") -> Component:
    return html.Div(
        [html.Strong(title), html.P(detail) if detail else None], className=f"notice tone-{tone}", role="status"
    )


def panel(title: str, body: Component, *, count: str = "", key: str = "") -> Component:
    """A block with a heading; ``count`` is said beside the heading."""
    heading = html.H2([title, html.Span(count, className="count") if count else None])
    return html.Section([heading, html.Div(body, className="panel-body")], className=f"panel {key}")


def folded(summary: Component, body: Component, *, is_open: bool = False) -> Component:
    return html.Details([html.Summary(summary), html.Div(body, className="folded")], open=is_open)


def _step(step: int | None) -> str:
    return "–" if step is None else f"{step:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else t("{rate} steps/min", rate=number(rate))


# one run


def run_head(run: RunView) -> Component:
    light, state = LIGHTS[run.light], RUN_STATES[run.state]
    about = dict.fromkeys([run.project, run.framework, run.model, *run.tags])
    return html.Div(
        [
            html.Div(
                [
                    html.Span(light.mark, className="lamp", **aria(hidden="true")),
                    html.Div(
                        [
                            html.H1(named(run)),
                            html.P([html.Strong(light.said), ": ", *visible(run.reason, 400)], className="reason"),
                            html.Ul(
                                [html.Li(visible(word, LONGEST_NAME)) for word in about if word], className="about"
                            ),
                        ]
                    ),
                ],
                className="verdict",
            ),
            html.Dl(
                [
                    fact(t("State"), [mark(state), *_phase(run)]),
                    fact(t("Step"), html.Span(_step(run.last_step), className="big")),
                    fact(t("Rate"), _rate(run.steps_per_minute) or "–"),
                    fact(
                        t("KL coefficient"),
                        number(run.kl_coef) if run.kl_coef is not None else "–",
                        t("in force now"),
                    ),
                    fact(t("Last seen"), when(run.last_seen_at)),
                ],
                className="facts",
            ),
        ],
        className=f"run-head tone-{light.tone}",
    )


def _phase(run: RunView) -> list[Component]:
    """What the job is at; nothing where the state says the same, or a job that steps has told no phase yet."""
    is_stale = run.phase == Phase.STARTING.value and run.last_step is not None
    return (
        []
        if is_stale or run.phase in ("", run.state.value)
        else [html.Span(visible(run.phase, 40), className="muted phase")]
    )


def attempt_choices(run: RunView) -> list[dict[str, str]]:
    """Newest first; the empty value follows the newest attempt."""
    rows = sorted(run.attempts, key=lambda a: a.ordinal, reverse=True)
    newest = [{"label": t("Newest attempt"), "value": ""}]
    return newest + [
        {
            "label": t("Attempt {ordinal}: {steps}", ordinal=a.ordinal, steps=_range(a.first_step, a.last_step)),
            "value": a.id,
        }
        for a in rows
    ]


def _range(first: int | None, last: int | None) -> str:
    return (
        t("no step yet") if first is None or last is None else t("steps {first} to {last}", first=first, last=last)
    )


# rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of a run's rules those that watch, those that cannot tell yet, and those that lack a metric."""

    watching: list[RuleView]
    unknown: list[RuleView]
    dormant: list[RuleView]


def standing_of(rules: Sequence[RuleView]) -> Standing:
    awake = [rule for rule in rules if not rule.dormant]
    return Standing(
        watching=[rule for rule in awake if rule.truth is not Truth.UNKNOWN],
        unknown=[rule for rule in awake if rule.truth is Truth.UNKNOWN],
        dormant=[rule for rule in rules if rule.dormant],
    )


def rule_list(rules: Sequence[RuleView]) -> Component:
    now = standing_of(rules)
    unknown, dormant = now.unknown, now.dormant
    return [
        html.P(t("{rules} watching.", rules=plural(len(now.watching), "rule")), className="quiet"),
        _rules(t("{rules} cannot run here", rules=plural(len(dormant), "rule")), dormant),
        _rules(t("{rules} cannot tell yet", rules=plural(len(unknown), "rule")), unknown),
    ]


def _rules(summary: str, rules: Sequence[RuleView]) -> Component:
    if not rules:
        return None
    told = dict.fromkeys((rule.rule, rule.reason or t("no reason given")) for rule in rules)
    rows = [html.Li([html.Code(name), html.Span(visible(reason, 300))]) for name, reason in told]
    return folded(summary, html.Ul(rows, className="reasons"))


# completions


def text_list(texts: Sequence[TextView]) -> Component:
    """Worst first: broken UTF-8, then what was kept for a reason, then the newest."""
    ranked = sorted(texts, key=lambda t: (-(t.invalid_utf8 or 0), t.why == "reservoir", -t.step, t.sample))
    if not ranked:
        return html.P(t("No completion has arrived yet."), className="quiet")
    return [_text_card(text) for text in ranked]


def text_signs(text: TextView) -> list[Component]:
    """What is wrong with a completion, and its reward."""
    signs: list[Component] = []
    if text.invalid_utf8:
        signs.append(
            html.Span(f"◆ {plural(text.invalid_utf8, 'broken sequence')}", className="badge tone-critical")
        )
    if text.truncated:
        signs.append(html.Span(t("▲ cut by the limit"), className="badge tone-warning"))
    if text.reward is not None:
        signs.append(html.Span(t("reward {reward}", reward=number(text.reward)), className="badge tone-idle"))
    return signs


def _text_card(text: TextView) -> Component:
    return html.Article(
        [
            html.Header(
                [
                    html.Span(t("step {step}, sample {sample}", step=text.step, sample=text.sample)),
                    html.Span(why_kept(text.why), className="muted"),
                    *text_signs(text),
                ]
            ),
            folded(t("Prompt"), html.Pre(visible(text.prompt, 600), className="prompt")) if text.prompt else None,
            html.Pre(visible(text.completion), className="completion"),
        ],
        className="text",
    )
