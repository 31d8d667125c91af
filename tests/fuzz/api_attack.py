"""Requests made from the service's own OpenAPI document, and what any answer to one must be."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import requests
from schemathesis import GenerationMode, openapi
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rlvitals_monitor.store import tokens
from tests.fuzz.budget import SEED, attack_batch
from tests.served import Served

PROBLEM = "application/problem+json"
TRUE_TO_THE_DOCUMENT = [content_type_conformance, response_schema_conformance, status_code_conformance]
NO_HTTP = b"Invalid HTTP request received."
"""The web server's own answer to what is no HTTP, which never comes to the app."""
KNOWN_MAX = 200
TIMEOUT_S = 60.0


class Attack:
    """``statuses`` counts the answers; `AssertionError` tells of one that must not be."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._session = requests.Session()
        self._random = random.Random(SEED)
        self._known: defaultdict[str, list[Any]] = defaultdict(list)
        self.statuses: Counter[int] = Counter()
        self._sign_in()

    def run(self, count: int) -> int:
        """At least ``count`` requests, spread evenly over all operations, of valid and of invalid data.

        Of some operations there are only few different requests: the others are asked again, from other seeds.
        """
        pairs = [(op, mode) for op in sorted(self._operations(), key=_destroys) for mode in _modes(op)]
        number = SEED
        while (missing := count - sum(self.statuses.values())) > 0:
            for operation, mode in pairs:
                each = math.ceil(missing / len(pairs))
                attack_batch(operation.as_strategy(generation_mode=mode), self.fire, each, number, smallest=False)
                number += 1
        return sum(self.statuses.values())

    def _operations(self) -> Iterator[Any]:
        schema = openapi.from_dict(self._served.app.openapi())
        schema.config.generation.update(with_security_parameters=False)
        for found in schema.get_all_operations():
            assert isinstance(found, Ok), found.err()
            yield found.ok()

    def fire(self, case: Any) -> None:
        for name in case.path_parameters or {}:
            if self._known[name] and self._random.random() < 0.6:
                case.path_parameters[name] = self._random.choice(self._known[name])
        answer = case.call(base_url=self._served.url, session=self._session, timeout=TIMEOUT_S)
        if answer.status_code == 401 and self._session.headers.get("authorization"):
            self._sign_in()
        self.statuses[answer.status_code] += 1
        said = f"{case.method} {case.formatted_path} → {answer.status_code}: {answer.content[:500]!r}"
        assert answer.status_code < 500, said
        if answer.content == NO_HTTP:
            return
        if answer.status_code >= 400:
            check_problem(answer, said)
        else:
            case.validate_response(answer, checks=TRUE_TO_THE_DOCUMENT)
            self._learn(answer)

    def _learn(self, answer: Any) -> None:
        """Keeps what things are called, so that later requests find them."""
        kind = answer.headers.get("content-type", ("",))[0].partition(";")[0]
        if kind != "application/json" or not answer.content:
            return
        told = answer.json()
        items = told.get("items", [told]) if isinstance(told, dict) else told
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                self._keep(answer.request.url, item)

    def _keep(self, url: str, item: dict[str, Any]) -> None:
        noun = url.partition("?")[0].rstrip("/").rpartition("/")[2].removesuffix("s")
        for key in ("id", "name", "number", "cause", "rule"):
            value = item.get(key)
            if isinstance(value, (str, int)) and value != "":
                for place in {noun if key == "id" else key, "id" if key == "id" else key}:
                    kept = self._known[place]
                    kept.append(value)
                    del kept[:-KNOWN_MAX]

    def know(self, **names: Any) -> None:
        """What was planted: a path's parameter and a value of it."""
        for name, value in names.items():
            self._known[name].append(value)

    def _sign_in(self) -> None:
        """As the owner, again where an attack revoked the token that it used."""
        made = tokens.make_token()
        with self._served.store.begin() as connection:
            tokens.register(connection, made, "attacker", {"admin"}, datetime.now(timezone.utc))
        self._session.headers["authorization"] = f"Bearer {made}"


def _destroys(operation: Any) -> bool:
    return bool(operation.method.upper() == "DELETE")


def _modes(operation: Any) -> tuple[GenerationMode, ...]:
    """Of a path alone nothing can be invalid: any text is one."""
    both = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return both if list(operation.query) or list(operation.body) else both[:1]


def check_problem(answer: Any, said: str) -> None:
    """RFC 9457: the media type, and the members that a reader relies on."""
    assert answer.headers["content-type"][0].partition(";")[0] == PROBLEM, said
    if answer.request.method == "HEAD":
        return
    told = answer.json()
    assert told["status"] == answer.status_code, said
    assert told["type"], said
    assert told["title"], said
