"""The typed client at the wire."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx2
import pytest

from rlvitals.contract.codec import dumps, loads
from rlvitals_dashboard.api import Api, ApiError, Forbidden, NotFound, SignInNeeded, Unreachable, Visitor, visitor
from tests.dashboard.fake import COOKIE, RUN, FakeService
from tests.dashboard.synthetic import lively

T = TypeVar("T")


def run(ask: Callable[[Api], Coroutine[Any, Any, T]], api: Api) -> T:
    async def main() -> T:
        async with api:
            return await ask(api)

    return asyncio.run(main())


def answering(status: int, body: bytes, seen: list[httpx2.Request] | None = None) -> Api:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        return httpx2.Response(status, content=body)

    return Api(httpx2.AsyncClient(transport=httpx2.MockTransport(answer), base_url="http://service"))


def as_anna(fake: FakeService) -> Api:
    visitor.set(Visitor(cookie=COOKIE, host="localhost"))
    return Api.of_app(fake.app)


def test_all_four_kinds_of_value_come_through_the_wire_apart() -> None:
    fake = lively(80)

    async def ask(api: Api) -> Any:
        found = await api.series(RUN, ["gradient.norm", "policy.loss"])
        return found, {m.metric: m for m in await api.metrics(RUN)}

    series, metrics = run(ask, as_anna(fake))
    gradient = series["gradient.norm"]
    values = dict(zip(gradient.step, gradient.value, strict=True))
    assert math.isnan(values[41])
    assert values[60] == math.inf
    assert dict(zip(series["policy.loss"].step, series["policy.loss"].value, strict=True))[57] == -math.inf
    assert (gradient.nan, gradient.pos_inf, series["policy.loss"].neg_inf) == ((41, 57), (60,), (57,))
    assert metrics["ratio.ess"].points == 0
    assert metrics["ratio.ess"].last_value is None
    assert "old log-probs" in metrics["ratio.ess"].missing_reason


def test_every_call_carries_the_visitors_cookie_and_origin() -> None:
    seen: list[httpx2.Request] = []
    visitor.set(Visitor(cookie="rlvitals_session=x", host="vitals.lan:8642", scheme="https"))
    run(lambda api: api.deny("c-1", "no"), answering(200, b"{}", seen))
    headers = seen[0].headers
    assert headers["cookie"] == "rlvitals_session=x"
    assert headers["host"] == "vitals.lan:8642"
    assert headers["origin"] == "https://vitals.lan:8642"
    assert headers["content-type"] == "application/json"


def test_without_a_visitor_no_cookie_is_sent() -> None:
    seen: list[httpx2.Request] = []
    run(lambda api: api.runs(), answering(200, b'{"items":[]}', seen))
    assert "cookie" not in seen[0].headers


def test_an_approval_without_an_argument_leaves_it_to_the_proposal() -> None:
    seen: list[httpx2.Request] = []
    told = dumps(lively(1).commands["c-1"])
    run(lambda api: api.approve("c-1"), answering(200, told, seen))
    run(lambda api: api.approve("c-1", 0.05), answering(200, told, seen))
    assert [loads(r.content) for r in seen] == [{}, {"argument": 0.05}]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, SignInNeeded), (403, Forbidden), (404, NotFound), (409, ApiError), (500, ApiError)],
)
def test_a_refusal_keeps_the_services_own_words(status: int, kind: type[ApiError]) -> None:
    body = dumps({"title": "Not so", "detail": "because of this"})
    with pytest.raises(kind, match="Not so: because of this"):
        run(lambda api: api.runs(), answering(status, body))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"null"])
def test_a_refusal_in_another_form_still_names_the_status(body: bytes) -> None:
    with pytest.raises(ApiError, match="502"):
        run(lambda api: api.runs(), answering(502, body))


@pytest.mark.parametrize("body", [b"<html>", b'{"items": [{"id": 7}]}', b'[{"id": null}]'])
def test_an_answer_that_cannot_be_read_is_said_to_be_so(body: bytes) -> None:
    with pytest.raises(ApiError, match="cannot be read"):
        run(lambda api: api.runs(), answering(200, body))


def test_a_service_that_is_away_is_unreachable() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    api = Api(httpx2.AsyncClient(transport=httpx2.MockTransport(refuse), base_url="http://service"))
    with pytest.raises(Unreachable):
        run(lambda a: a.runs(), api)


def test_names_cannot_leave_their_place_in_a_path() -> None:
    seen: list[httpx2.Request] = []
    with pytest.raises(ApiError):
        run(lambda api: api.run("../alerts?x#y"), answering(200, b"{}", seen))
    assert seen[0].url.raw_path == b"/api/v1/runs/..%2Falerts%3Fx%23y"


def test_many_metrics_are_asked_for_in_several_requests() -> None:
    seen: list[httpx2.Request] = []
    run(lambda api: api.series("r", [f"m{i}" for i in range(45)]), answering(200, b"[]", seen))
    assert [len(r.url.params.get_list("metric")) for r in seen] == [20, 20, 5]


ROW = {"run": "r", "attempt": "a", "metric": "m", "bucket": 2, "step": [1, 3], "value": [0.5, 2.0]}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"value": ["NaN", "-Infinity"], "low": [None, 1.0], "high": [None, 2.0]}, (math.nan, -math.inf)),
        ({"value": [1, 2.5], "low": [0, None]}, (1.0, 2.5)),
        ({"value": ["Infinity", 2.5], "missing_reason": "why"}, (math.inf, 2.5)),
    ],
)
def test_columns_of_a_chart_come_through_with_every_kind_of_number(told: Any, expected: tuple[float, ...]) -> None:
    (view,) = run(lambda api: api.series("r", ["m"]), answering(200, dumps([{**ROW, **told}]))).values()
    assert [str(value) for value in view.value] == [str(value) for value in expected]
    assert (view.step, view.low) == ((1, 3), tuple(told.get("low", ())))
    assert {type(value) for value in (*view.value, *view.low)} <= {float, type(None)}


@pytest.mark.parametrize(
    "broken", [{"value": [None, 1.0]}, {"step": [1.5, 3]}, {"step": [True]}, {"low": "1"}, {}]
)
def test_a_column_that_is_none_is_an_answer_that_cannot_be_read(broken: Any) -> None:
    body = dumps([{**ROW, **broken} if broken else "nothing"])
    with pytest.raises(ApiError, match="cannot be read"):
        run(lambda api: api.series("r", ["m"]), answering(200, body))
