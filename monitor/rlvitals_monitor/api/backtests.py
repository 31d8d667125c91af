"""Rules tried on stored runs: how precise each is, and what another rule file would have said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anyio
from fastapi import APIRouter, Request

from rlvitals.contract import codec
from rlvitals_monitor.alerts.replay import Episode
from rlvitals_monitor.alerts.rulebook import RuleBook
from rlvitals_monitor.api.deps import ContractResponse, Reader, StoreDep
from rlvitals_monitor.api.replay import own_rules
from rlvitals_monitor.api.rules import RuleBookDep, RulesDep
from rlvitals_monitor.api.uploads import limiter
from rlvitals_monitor.backtest import Chosen, try_stored
from rlvitals_monitor.errors import BadRequest, TooLarge
from rlvitals_monitor.rules.document import RuleFileError
from rlvitals_monitor.rules.rule import Rule
from rlvitals_monitor.store.engine import Store
from rlvitals_monitor.store.names import RUN_ID
from rlvitals_monitor.trials import Trial, compare, keep_record

RUNS_MAX = 50
BODY_MAX = 4 << 20

router = APIRouter(prefix="/api/v1", tags=["rules"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRun:
    """``bad``: it went wrong; ``since``: from which step, where that is known."""

    run: str
    attempt: str | None = None
    bad: bool = False
    since: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """``rules`` and ``against`` are texts of rule files, each over the catalogue; empty: the rules in force.

    ``edited``: in place of ``rules`` those that would be in force with this text as the edited rule document.
    """

    runs: tuple[ChosenRun, ...]
    rules: str = ""
    edited: str | None = None
    against: str | None = None


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["runs"],
                    "properties": {
                        "runs": {"type": "array", "items": {"type": "object"}, "maxItems": RUNS_MAX},
                        "rules": {"type": "string"},
                        "edited": {"type": "string"},
                        "against": {"type": "string"},
                    },
                }
            }
        },
    }
}


@router.post("/rules/backtest", summary="How precise the rules are on chosen past runs", openapi_extra=_BODY)
async def post_backtest(
    request: Request, _who: Reader, store: StoreDep, book: RuleBookDep, rules: RulesDep
) -> ContractResponse:
    """Writes nothing."""
    asked = codec.decode(BacktestRequest, codec.loads(await _body(request)))
    if not 1 <= len(asked.runs) <= RUNS_MAX:
        raise BadRequest(f"expected 1 to {RUNS_MAX} runs, got {len(asked.runs)}", field="runs")
    ours = _ours(asked, book) or rules
    theirs = None
    if asked.against is not None:
        theirs = own_rules(asked.against, "against") if asked.against else rules

    def work() -> dict[str, object]:
        trials = _trials(store, asked, ours)
        told = _told(trials)
        if theirs is not None:
            told["differences"] = list(compare(trials, _trials(store, asked, theirs)))
        return told

    return ContractResponse(await anyio.to_thread.run_sync(work, limiter=limiter(request.app.state)))


def _ours(asked: BacktestRequest, book: RuleBook) -> tuple[Rule, ...]:
    """Nothing where the rules in force are meant. Raises `BadRequest`."""
    if asked.edited is None:
        return own_rules(asked.rules) if asked.rules else ()
    if asked.rules:
        raise BadRequest("expected rules or edited, got both", field="edited")
    try:
        return book.over(asked.edited)
    except RuleFileError as error:
        raise BadRequest(str(error), field="edited") from None


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise TooLarge(f"expected at most {BODY_MAX} bytes")
    return bytes(body)


def _trials(store: Store, asked: BacktestRequest, rules: tuple[Rule, ...]) -> list[Trial]:
    found: list[Trial] = []
    for place, one in enumerate(asked.runs):
        if not RUN_ID.fullmatch(one.run):
            raise BadRequest("expected a run's id", field=f"runs.{place}.run")
        chosen = Chosen(name=one.run, attempt=one.attempt, bad=one.bad, since=one.since)
        found.append(try_stored(store, chosen, rules))
    return found


def _told(trials: list[Trial]) -> dict[str, object]:
    record = keep_record(trials)
    return {
        "runs": [
            {"run": trial.run, "steps": trial.steps, "alerts": [_alert(e) for e in trial.episodes]}
            for trial in trials
        ],
        "rules": [
            {
                "alert": rule.alert,
                "severity": rule.severity,
                "fired": rule.fired,
                "right": rule.right,
                "precision": rule.precision,
                "named": rule.named,
            }
            for rule in record.rules
        ],
        "bad_runs": record.bad_runs,
        "quiet": record.quiet,
        "false_alarms": record.false,
        "healthy_steps": record.healthy_steps,
        "false_per_thousand": record.false_per_thousand,
    }


def _alert(episode: Episode) -> dict[str, object]:
    evaluation = episode.judgement.evaluation
    return {
        "alert": episode.alert,
        "severity": episode.severity,
        "step": episode.fired,
        "resolved_step": episode.resolved,
        "metric": evaluation.metric,
        "value": evaluation.value,
        "threshold": evaluation.threshold,
    }
