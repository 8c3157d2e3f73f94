"""A request and a response of the control API, whole."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from kproto_server.control.problem import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.control.problem import Problem

JSON_TYPE = "application/json"
PROBLEM_TYPE = "application/problem+json"
PARAMETERS_MAX = 100


class HttpRequest(NamedTuple):
    """A request that has arrived whole."""

    method: str
    target: str
    """Path and query, as sent."""
    headers: Mapping[str, str]
    """By name in lower case; of repeated names the last."""
    body: bytes = b""

    @property
    def path(self) -> tuple[str, ...]:
        """The segments of the path, decoded; a group id may have any character.

        Raises:
            Problem: the path is not absolute, or not UTF-8.
        """
        path = self.target.partition("?")[0]
        if not path.startswith("/"):
            raise bad_request("the target of a request is an absolute path")
        try:
            return tuple(unquote_to_bytes(segment).decode() for segment in path[1:].split("/"))
        except UnicodeDecodeError:
            raise bad_request("the path is not UTF-8") from None

    @property
    def query(self) -> dict[str, str]:
        """The parameters of the query.

        Raises:
            Problem: a parameter is repeated, there are too many, or they are not UTF-8.
        """
        found: dict[str, str] = {}
        try:
            given = parse_qsl(
                self.target.partition("?")[2],
                keep_blank_values=True,
                strict_parsing="?" in self.target and not self.target.endswith("?"),
                errors="strict",
                max_num_fields=PARAMETERS_MAX,
            )
        except ValueError:
            raise bad_request("the query is not name=value&... in UTF-8 with at most 100 parameters") from None
        for name, value in given:
            if name in found:
                raise bad_request(f"the parameter {name!r} is given more than once")
            found[name] = value
        return found

    @property
    def json_object(self) -> dict[str, object]:
        """The body, a JSON object; empty if there is no body.

        Raises:
            Problem: it is none.
        """
        if not self.body:
            return {}
        try:
            value = json.loads(self.body.decode(), parse_constant=_refuse, object_pairs_hook=_once)
            json.dumps(value, ensure_ascii=False).encode()  # strings without half a surrogate pair
        except RecursionError:
            raise bad_request("the body is nested too deeply") from None
        except ValueError as error:
            raise bad_request(f"the body is not JSON: {str(error)[:200]}") from None
        if not isinstance(value, dict):
            raise bad_request("the body is a JSON object with the arguments")
        return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is given more than once in an object")
    return found


class HttpResponse(NamedTuple):
    """A response."""

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: tuple[tuple[str, str], ...] = ()


def json_response(value: object, status: int = 200) -> HttpResponse:
    """Return a response with a value as JSON."""
    return HttpResponse(status, _encoded(value))


def problem_response(problem: Problem) -> HttpResponse:
    """Return the response that reports a problem."""
    return HttpResponse(int(problem.status), _encoded(problem.as_object()), PROBLEM_TYPE, problem.headers)


def _encoded(value: object) -> bytes:
    # Names of clients may have half a surrogate pair: those become escapes, which JSON allows.
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError:  # a quota may be infinite, or no number
        text = json.dumps(_without_constants(value))
    return text.encode() + b"\n"


def _without_constants(value: object) -> object:
    """Return a value with a string for each number that JSON does not have: NaN, Infinity, -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {name: _without_constants(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_constants(one) for one in value]
    return value
