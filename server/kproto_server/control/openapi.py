"""The description of the control API in OpenAPI 3.1, made from the table of operations."""

from __future__ import annotations

import importlib.metadata
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from kproto_server.control.message import PROBLEM_TYPE
from kproto_server.control.schema import INTEGER, STRING, an_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kproto_server.control.operation import Operation

PROBLEM = an_object({"type": STRING, "title": STRING, "status": INTEGER, "detail": STRING}, error=STRING)


def description(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kproto control API",
            "version": importlib.metadata.version("kproto"),
            "description": "Clock, nodes, faults, topics, groups and requests of a running broker, for tests.",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": PROBLEM},
            "responses": {
                "Problem": {
                    "description": "what is wrong (RFC 9457)",
                    "content": {PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
            },
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    problem = {"$ref": "#/components/responses/Problem"}
    responses: dict[str, Any] = {str(operation.result.status): _response(operation), "default": problem}
    if operation.waits:
        responses[str(int(HTTPStatus.GATEWAY_TIMEOUT))] = problem
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.segments[0]],
        "responses": responses,
    }
    parameters = [
        _parameter(operation, name)
        for name in operation.arguments
        if name in operation.in_path or not operation.has_body
    ]
    if parameters:
        found["parameters"] = parameters
    body = {name: one for name, one in operation.arguments.items() if name not in operation.in_path}
    if operation.has_body and body:
        schema = {
            "type": "object",
            "properties": {name: one.schema for name, one in body.items()},
            "additionalProperties": False,
        }
        required = [name for name, one in body.items() if one.is_required]
        example = {name: value for name, value in operation.example.items() if name in body}
        content = {"schema": schema | ({"required": required} if required else {}), "example": example}
        found["requestBody"] = {"required": bool(required), "content": {"application/json": content}}
    return found


def _parameter(operation: Operation, name: str) -> dict[str, Any]:
    argument = operation.arguments[name]
    is_in_path = name in operation.in_path
    found = {
        "name": name,
        "in": "path" if is_in_path else "query",
        "required": is_in_path or argument.is_required,
        "schema": argument.schema,
    }
    return found | ({"example": operation.example[name]} if name in operation.example else {})


def _response(operation: Operation) -> dict[str, Any]:
    result = operation.result
    if result.status == HTTPStatus.NO_CONTENT:
        return {"description": result.text}
    media = {} if result.schema is None else {"schema": result.schema}
    return {"description": result.text, "content": {result.content_type: media}}
