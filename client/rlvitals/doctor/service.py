"""Whether the service answers, takes the token, and has the same time; nothing is stored there by asking."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime

from rlvitals.doctor.finding import Finding, State
from rlvitals.guard import attempt
from rlvitals.settings import Mode, Settings
from rlvitals.transport import Transport, pack

SECTION = "service"
SKEW_MAX_S = 30.0
"""Commands live for minutes, and the service's clock judges silence; the header itself counts whole seconds."""
ASKED_FOR_S = 5.0
NO_TOKEN = "set RLVITALS_TOKEN (`rlvitals token create` on the service's machine makes one)"

Ask = Callable[[bytes], "tuple[int, Mapping[str, str], bytes]"]


def examine_service(
    settings: Settings, *, ask: Ask | None = None, clock: Callable[[], float] = time.time
) -> Iterator[Finding]:
    """``ask`` sends a body to the collector and gives status, headers and body, or raises OSError."""
    if settings.mode is not Mode.ONLINE:
        said = {Mode.OFFLINE: "mode offline: runs are journalled and sent by `rlvitals sync`"}
        told = said.get(settings.mode, "mode disabled: nothing is measured and nothing is reported")
        yield Finding(section=SECTION, state=State.NOTE, told=told, fix="unset RLVITALS_MODE to change that")
        return
    ask = ask or Transport(settings.url, settings.token, timeout_s=min(ASKED_FOR_S, settings.timeout_s)).ask
    began = clock()
    try:
        # a body that can't be filed anywhere: who may report is looked at before it is read
        status, headers, _ = ask(pack({}))
    except (OSError, ValueError) as error:
        yield Finding(
            section=SECTION,
            state=State.WRONG,
            told=f"{settings.url} does not answer: {type(error).__name__}: {error}",
            fix="start `rlvitals serve`, or set RLVITALS_URL; until then runs wait in the spool, nothing is lost",
        )
        return
    yield _answer(settings, status)
    if status < 500:
        yield from _skew(headers, began, clock())


def _answer(settings: Settings, status: int) -> Finding:
    def found(state: State, told: str, fix: str = "") -> Finding:
        return Finding(section=SECTION, state=state, told=told, fix=fix)

    if status == 422:
        return found(State.OK, f"{settings.url} answers and takes the token")
    if status == 401:
        refused = f"refuses the token (401 of {settings.url})" if settings.token else "wants a token, none is set"
        return found(State.WRONG, f"the service {refused}", NO_TOKEN)
    if status == 403:
        return found(State.WRONG, "the token is known but may not report (403)", "make one with the scope ingest")
    if 300 <= status < 400:
        return found(State.WRONG, f"{settings.url} redirects elsewhere, which is not followed", "set RLVITALS_URL")
    if status >= 500:
        return found(State.WRONG, f"the service is there and not ready (HTTP {status})", "see its log")
    return found(State.WRONG, f"HTTP {status}: {settings.url} is no RL Vitals service", "set RLVITALS_URL")


def _skew(headers: Mapping[str, str], began: float, ended: float) -> Iterator[Finding]:
    moment = attempt(parsedate_to_datetime, headers.get("date", ""))
    if moment is None:
        yield Finding(section=SECTION, state=State.NOTE, told="clock skew not measured: the answer has no date")
        return
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    # the header counts whole seconds, downwards
    ahead = (began + ended) / 2 - (moment.timestamp() + 0.5)
    said = f"this machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the service's"
    if abs(ahead) > SKEW_MAX_S + (ended - began) / 2:
        yield Finding(section=SECTION, state=State.WRONG, told=said, fix="set both clocks (NTP)")
    else:
        yield Finding(section=SECTION, state=State.OK, told="both clocks agree within a second or so")
