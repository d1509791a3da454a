"""The API's description, made of the questions' signatures, docstrings and structs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

import kerf

_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "object", "properties": {name: {"type": "string"} for name in ("code", "message", "hint")}}
    },
}


def openapi(questions: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return the OpenAPI document. Beside each time as a number the answers have it as RFC 3339 (`at`, `at_time`)."""
    signatures = {name: inspect.signature(question, eval_str=True) for name, question in questions.items()}
    schemas, components = msgspec.json.schema_components(
        [signature.return_annotation for signature in signatures.values()], ref_template="#/components/schemas/{name}"
    )
    paths = {
        f"/api/v1/{name}": {"get": _operation(name, inspect.getdoc(questions[name]) or "", signatures[name], schema)}
        for name, schema in zip(signatures, schemas, strict=True)
    }
    bearer = {"type": "http", "scheme": "bearer"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "kerf explorer", "version": kerf.__version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": bearer}},
    }


def _operation(name: str, doc: str, signature: inspect.Signature, schema: dict[str, Any]) -> dict[str, Any]:
    parameters = list(signature.parameters.values())[1:]
    return {
        "operationId": name,
        "summary": " ".join(doc.partition("\n\n")[0].split()),
        "parameters": [
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.default is inspect.Parameter.empty,
                "schema": {"type": "integer" if parameter.annotation is int else "string"},
            }
            for parameter in parameters
        ],
        "responses": {
            "200": {"description": "The answer", "content": {"application/json": {"schema": schema}}},
            "400": {"description": "What is wrong", "content": {"application/json": {"schema": _ERROR}}},
        },
    }
