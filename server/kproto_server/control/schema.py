"""JSON schemas of values of Python."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

Schema = dict[str, Any]

INT64_MAX = 2**63 - 1
NAMES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
KNOWN: dict[str, Any] = {"Literal": Literal, "Mapping": Mapping, "Sequence": Sequence}
"""Types that modules import for type checkers only."""

INTEGER: Schema = {"type": "integer"}
STRING: Schema = {"type": "string"}


def an_object(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """Return the schema of an object."""
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def a_list(schema: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": schema}


def schema_of(hint: Any) -> Schema:
    """Return the JSON schema of a type of Python.

    Raises:
        TypeError: JSON has no such values.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is int:
        return {"type": "integer", "minimum": -INT64_MAX - 1, "maximum": INT64_MAX}
    if hint is Any:
        return {"type": [*NAMES.values(), "object", "array"]}
    if hint in NAMES:
        return {"type": NAMES[hint]}
    if origin in (Union, UnionType):
        schemas = [schema_of(one) for one in arguments]
        merged: Schema = {name: value for schema in schemas for name, value in schema.items()}
        if "enum" in merged and NoneType in arguments:
            merged["enum"] = [*merged["enum"], None]
        return merged | {"type": [one["type"] for one in schemas]}
    if is_typeddict(hint):
        fields = {name: schema_of(one) for name, one in get_type_hints(hint, None, KNOWN).items()}
        required = [name for name in fields if name in hint.__required_keys__]
        found: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
        return found | ({"required": required} if required else {})
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin is Sequence:
        return {"type": "array", "items": schema_of(arguments[0])}
    raise TypeError(f"the control API has no {hint!r}")


def problem_of(name: str, value: object, schema: Schema) -> str | None:
    """Return what is wrong with a JSON value; None: nothing is. ``name``: what the text calls it."""
    types = types_of(schema)
    if not any(_is_of(value, one) for one in types):
        return f"{name} is {' or '.join(map(_with_article, types))}, not {_shown(value)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} is one of {', '.join(filter(None, schema['enum']))}, not {_shown(value)}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not low <= value <= high:
            return f"{name} is a number from {low} to {high}, not {_shown(value)}"
    if isinstance(value, list) and "items" in schema:
        found = (problem_of(f"{name}[{index}]", one, schema["items"]) for index, one in enumerate(value))
        return next((one for one in found if one is not None), None)
    if isinstance(value, dict):
        return _problem_of_fields(name, value, schema)
    return None


def _problem_of_fields(name: str, value: Mapping[str, object], schema: Schema) -> str | None:
    fields: Mapping[str, Schema] = schema.get("properties", {})
    others: Schema | bool = schema.get("additionalProperties", True)
    for field in schema.get("required", ()):
        if field not in value:
            return f"{name} needs {field}"
    for field, one in value.items():
        if field not in fields and others is False:
            return f"{name} has no {field[:100]!r}; it has: {', '.join(fields)}"
        expected = fields.get(field, others)
        found = problem_of(f"{name}.{field[:100]}", one, expected) if isinstance(expected, dict) else None
        if found is not None:
            return found
    return None


def types_of(schema: Schema) -> list[str]:
    """Return the types that values may have."""
    types = schema["type"]
    return [types] if isinstance(types, str) else list(types)


def _is_of(value: object, type_: str) -> bool:
    match type_:
        case "integer":
            return type(value) is int
        case "number":
            return type(value) in (int, float) and abs(value) <= 1e300  # type: ignore[arg-type]
        case "boolean":
            return type(value) is bool
        case "null":
            return value is None
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
    return isinstance(value, str)


def _with_article(type_: str) -> str:
    return type_ if type_ == "null" else f"{'an' if type_[0] in 'aeio' else 'a'} {type_}"


def _shown(value: object) -> str:
    text = json.dumps(value) if isinstance(value, (bool, NoneType)) else repr(value)
    return text if len(text) <= 100 else text[:100] + "..."
