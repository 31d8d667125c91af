"""Kept completions through the API, on both databases: by step, worst first, with tokens, of one prompt."""

from __future__ import annotations

import math
from typing import Any

import pytest
from fastapi.testclient import TestClient

from rlvitals.contract import codec
from rlvitals.contract.report import TokenDetail
from rlvitals.contract.view import TextStepView, TextView
from tests.monitor.batches import NOW_S

DETAIL = TokenDetail(
    pieces={"7": "e4", "9": "e4bda0"},
    kinds={"7": "byte", "8": "unassigned"},
    scores={"logp": (-0.5, math.nan, None), "ref_logp": (math.inf, -math.inf, -0.25)},
)


def put(client: TestClient, *texts: dict[str, Any], attempt: str = "a1") -> dict[str, Any]:
    body = {
        "run": {"id": "r1"},
        "attempt": attempt,
        "names": ["m"],
        "rows": [[1, 1, NOW_S, 0.5]],
        "texts": [
            {"seq": 10 + n, "step": 1, "sample": n, "completion": f"c{n}", **text} for n, text in enumerate(texts)
        ],
    }
    answer = client.post("/api/v1/reports", json=body)
    assert answer.status_code == 200
    return dict(answer.json())


def got(client: TestClient, path: str, kind: type[Any] = TextView) -> Any:
    answer = client.get(f"/api/v1/runs/r1/texts{path}")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return [codec.decode(kind, one) for one in body] if isinstance(body, list) else codec.decode(kind, body)


def test_the_tokens_of_a_completion_come_back_as_they_were_told_with_nan_infinities_and_missing_apart(
    client: TestClient,
) -> None:
    put(client, {"token_ids": [7, 8, 9], "tokens": codec.encode(DETAIL)}, {"token_ids": [1]})
    first, second = sorted(got(client, ""), key=lambda text: text.sample)
    assert (first.tokens, second.tokens) == (None, None)
    read = got(client, f"/{first.number}").tokens
    assert (read.pieces, read.kinds) == (DETAIL.pieces, DETAIL.kinds)
    assert [str(v) for v in read.scores["logp"]] == ["-0.5", "nan", "None"]
    assert read.scores["ref_logp"] == (math.inf, -math.inf, -0.25)
    assert got(client, f"/{second.number}").tokens is None


def test_the_worst_completion_of_a_step_comes_first(client: TestClient) -> None:
    rewards: list[float | str | None] = [None, "Infinity", 0.5, -2.0, "-Infinity", "NaN"]
    put(
        client,
        *({"reward": reward, "why": "reservoir"} for reward in rewards),
        {"why": "worst_length", "reward": 9.0},
        {"invalid_utf8": 3, "reward": 9.0},
        {"step": 2, "invalid_utf8": 99},
    )
    assert [text.sample for text in got(client, "?step=1&worst=true")] == [7, 6, 5, 4, 3, 2, 1, 0]
    assert [text.sample for text in got(client, "?worst=true&limit=2")] == [8, 7]


def test_the_steps_with_completions_are_told_with_what_is_wrong_in_them(client: TestClient) -> None:
    put(client, {"invalid_utf8": 2, "truncated": True}, {}, {"step": 5, "invalid_utf8": 1, "truncated": False})
    put(client, {"step": 3}, attempt="a2")
    shapes = [
        (s.attempt, s.step, s.texts, s.invalid_utf8, s.truncated) for s in got(client, "/steps", TextStepView)
    ]
    assert shapes == [("a2", 3, 1, 0, 0)]
    older = got(client, "/steps?attempt=a1", TextStepView)
    assert [(s.step, s.texts, s.invalid_utf8, s.truncated) for s in older] == [(5, 1, 1, 0), (1, 2, 2, 1)]
    put(client, *({"seq": 20 + n, "step": n} for n in range(6, 10)))
    near = got(client, "/steps?attempt=a1&around=6&limit=4", TextStepView)
    assert [s.step for s in near] == [8, 7, 6, 5]
    assert [text.step for text in got(client, "?attempt=a2")] == [3]


def test_other_completions_of_a_prompt_are_found_among_its_neighbours(client: TestClient) -> None:
    put(client, *({"step": n, "prompt": "1 + 1 = \x00" if n % 2 else "else"} for n in range(6)), {"prompt": ""})
    one = next(text for text in got(client, "") if text.step == 3)
    assert [text.step for text in got(client, f"/{one.number}/same-prompt")] == [5, 1]
    last = next(text for text in got(client, "") if text.step == 5)
    assert [text.step for text in got(client, f"/{last.number}/same-prompt")] == [3, 1]
    bare = next(text for text in got(client, "") if not text.prompt)
    assert got(client, f"/{bare.number}/same-prompt") == []


def test_a_completion_of_another_run_is_not_there(client: TestClient) -> None:
    put(client, {})
    (mine,) = got(client, "")
    body = {"run": {"id": "r2"}, "attempt": "b1", "names": ["m"], "rows": [[1, 1, NOW_S, 0.5]]}
    client.post("/api/v1/reports", json=body)
    for path in (
        f"r2/texts/{mine.number}",
        "r1/texts/999999",
        f"r2/texts/{mine.number}/same-prompt",
        "no/texts/1",
    ):
        assert client.get(f"/api/v1/runs/{path}").status_code == 404, path
    assert client.get(f"/api/v1/runs/r1/texts/{2**64}").status_code == 422


@pytest.mark.parametrize(
    "tokens",
    [
        {"pieces": {"x": "00"}},
        {"pieces": {"1": "0"}},
        {"pieces": {"1": "ZZ"}},
        {"pieces": {"1": "00" * 257}},
        {"pieces": {str(n): "00" for n in range(4_097)}},
        {"kinds": {"1": "<b>"}},
        {"scores": {"logp; drop": [1.0]}},
        {"scores": {"logp": [0.0] * 4_097}},
        {"scores": {name * 3: [0.0] for name in "abcdefghi"}},
    ],
)
def test_tokens_beyond_their_bounds_are_refused_with_a_reason_and_the_rest_is_stored(
    client: TestClient, tokens: dict[str, Any]
) -> None:
    (refused,) = put(client, {"tokens": tokens}, {})["refused"]
    assert refused["field"] == "texts"
    assert "tokens" in refused["reason"] or "token ids" in refused["reason"]
    assert [text.sample for text in got(client, "")] == [1]
