"""What the browser's own script gets when it asks for other steps of a run's charts."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import httpx2
import pytest

from rlvitals_dashboard.api import Api
from rlvitals_dashboard.app import create_dash
from rlvitals_dashboard.run_view import View
from tests.dashboard.fake import COOKIE, RUN, FakeService
from tests.dashboard.synthetic import lively
from tests.dashboard.test_run_drawing import draw


def service() -> FakeService:
    fake = lively()
    create_dash(fake.app, Api.of_app(fake.app))
    return fake


def ask(fake: FakeService, body: bytes, cookie: str = COOKIE, run: str = RUN) -> httpx2.Response:
    async def main() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=fake.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://vitals") as client:
            return await client.post(f"/ui/charts/{run}", content=body, headers={"cookie": cookie})

    return asyncio.run(main())


def question(fake: FakeService, **other: Any) -> bytes:
    there = draw(fake)
    whole = {"view": View(run=RUN, first=10, last=20).data(), "theme": "light", "frame": there.pulse["frame"]}
    return json.dumps(whole | {"metrics": ["reward.mean", "kl.k3"]} | other).encode()


def test_only_the_charts_that_are_asked_for_come_with_the_steps_that_are_asked_for() -> None:
    fake = service()
    answer = ask(fake, question(fake))
    told = answer.json()
    assert (answer.status_code, list(told["parts"])) == (200, ["reward.mean", "kl.k3"])
    assert answer.headers["cache-control"] == "no-store"
    assert all(part["figure"]["layout"]["xaxis"]["range"] == [10, 20] for part in told["parts"].values())
    assert (told["pulse"]["zoomed"], list(told["pulse"]["at"])) == (True, ["reward.mean", "kl.k3"])
    assert [tool["type"] for tool in told["tools"] if tool]


@pytest.mark.parametrize(("value", "trace"), [(math.nan, "NaN"), (math.inf, "+Inf"), (-math.inf, "−Inf")])
def test_what_is_no_number_comes_as_its_mark_and_what_is_missing_as_nothing(value: float, trace: str) -> None:
    fake = service()
    fake.put("reward.mean", {15: value})
    figure = ask(fake, question(fake)).json()["parts"]["reward.mean"]["figure"]
    drawn = {line["name"]: line["x"] for line in figure["data"]}
    assert drawn[trace] == [15]
    others = {"NaN", "+Inf", "−Inf"} - {trace}
    assert [drawn[name] for name in others] == [[], []]


def test_charts_that_were_drawn_by_something_else_are_made_anew() -> None:
    fake = service()
    assert ask(fake, question(fake, frame=1)).json() == {"redraw": True}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"view": 3}', b'{"view": {}, "frame": 1, "metrics": [3]}', b"\xff", b"9" * 9000]
)
def test_what_is_no_question_is_refused_and_not_a_crash(body: bytes) -> None:
    assert ask(service(), body).status_code == 422


def test_more_charts_than_any_page_has_are_refused() -> None:
    fake = service()
    assert ask(fake, question(fake, metrics=["x"] * 1_001)).status_code == 422


def test_a_stranger_gets_nothing_of_a_run() -> None:
    fake = service()
    answer = ask(fake, question(fake), cookie="")
    assert (answer.status_code, list(answer.json())) == (502, ["title", "detail", "status"])
