"""The OpenAPI document, made true: numbers may be the words of the codec, failures are problem+json."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse

from rlvitals.contract.codec import NAN, NEG_INF, POS_INF
from rlvitals_monitor.api import problems
from rlvitals_monitor.api.deps import Reader

PATH = "/api/openapi.json"

_NUMBER = {"$ref": "#/components/schemas/Number"}
_NUMBER_SCHEMA = {
    "title": "Number",
    "description": "JSON has no NaN and no infinities, so they are spelt as words. null means missing.",
    "anyOf": [{"type": "number"}, {"type": "string", "enum": [NAN, POS_INF, NEG_INF]}],
}
_PROBLEM = {
    "description": "What was wrong, as problem+json",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


def install(app: FastAPI) -> None:
    """Makes ``app`` describe itself so; the document is made once, at the first request."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(
                title=app.title, version=app.version, description=app.description, routes=app.routes
            )
            app.openapi_schema = _made_true(made)
        return app.openapi_schema

    def describe(_who: Reader) -> JSONResponse:
        return JSONResponse(document())

    app.openapi = document  # type: ignore[method-assign]
    app.add_api_route(PATH, describe, include_in_schema=False)


def files(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """The documented answer of what is no JSON: a text of one of these media types."""
    return {200: {"content": {kind: {"schema": {"type": "string"}} for kind in kinds}}}


def _made_true(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    document["components"]["schemas"] = {name: _numbers(schema) for name, schema in schemas.items()}
    document["components"]["schemas"] |= {"Number": _NUMBER_SCHEMA, "Problem": problems.SCHEMA}
    for path in document["paths"].values():
        for operation in path.values():
            operation["responses"] = {
                code: answer for code, answer in operation["responses"].items() if code != "422"
            } | {"default": _PROBLEM}
    return document


def _numbers(schema: Any) -> Any:
    """``schema`` with every number replaced by our Number."""
    if isinstance(schema, list):
        return [_numbers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "number":
        kept = {key: value for key, value in schema.items() if key in ("title", "description", "default")}
        return _NUMBER | kept
    return {key: _numbers(value) for key, value in schema.items()}
