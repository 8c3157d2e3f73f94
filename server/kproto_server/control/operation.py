"""One operation of the control API: its route, and the arguments that the signature of its function has."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, get_args, get_origin, get_type_hints

from kproto_server.broker.request_filter import RequestFilter
from kproto_server.control.problem import bad_request
from kproto_server.control.queries import WAIT_MAX_S
from kproto_server.control.schema import KNOWN, Schema, problem_of, schema_of, types_of
from kproto_server.faults.rule import FaultRule

if TYPE_CHECKING:
    from kproto_server.control.controls import Controls
    from kproto_server.control.results import Result

LIMITS: dict[str, Schema] = {
    "timeout_s": {"minimum": 0, "maximum": WAIT_MAX_S},
    "limit": {"minimum": 1, "maximum": 1000},
}
"""What the types of Python do not say of arguments with these names."""
KNOWN_HERE: dict[str, Any] = KNOWN | {"FaultRule": FaultRule, "RequestFilter": RequestFilter}
"""Types that modules import for type checkers only."""


class Argument(NamedTuple):
    """One argument of an operation."""

    name: str
    schema: Schema
    is_required: bool

    def check(self, value: object) -> None:
        """Refuse a value of another type or out of range.

        Raises:
            Problem: the value is wrong; the text has what it can be.
        """
        problem = problem_of(self.name, value, self.schema)
        if problem is not None:
            raise bad_request(problem)

    def parsed(self, text: str) -> object:
        """Return the value of a text in a path or a query, which may still be of another type."""
        types = types_of(self.schema)
        if "integer" in types and text.removeprefix("-").isdecimal() and text.isascii() and len(text) < 20:
            return int(text)
        if "number" in types:
            try:
                return float(text)
            except ValueError:
                return text
        if "boolean" in types and text in ("true", "false"):
            return text == "true"
        return text


class Operation:
    """One operation: a method and a path, and the function that performs it.

    Args:
        method, path: the route; ``{name}`` in the path is an argument.
        function: a function of `BrokerControls` or of other controls, or a method of one of their parts.
        result: how its result becomes JSON.
        is_passive: whether it may be called all the time, by monitoring: the broker need not keep requests for it.
        of: the name of the part of `BrokerControls`; empty: the function has `BrokerControls` as its first argument.
        example: arguments of a call that tests make.
    """

    def __init__(
        self,
        method: str,
        path: str,
        function: Callable[..., Any],
        result: Result,
        *,
        is_passive: bool = False,
        of: str = "",
        example: Mapping[str, Any] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.result = result
        self.example: Mapping[str, Any] = example or {}
        self.function = function
        self.name: str = f"{of}_{function.__name__}".strip("_")
        self._of = of
        self._is_passive = is_passive
        self.segments: tuple[str, ...] = tuple(path[1:].split("/"))
        self.arguments: dict[str, Argument] = {one.name: one for one in _arguments(function)}
        self.in_path: tuple[str, ...] = tuple(one[1:-1] for one in self.segments if one.startswith("{"))

    @property
    def waits(self) -> bool:
        """Whether it may take long."""
        return "timeout_s" in self.arguments

    @property
    def has_body(self) -> bool:
        """Whether arguments are in the body, not in the query."""
        return self.method not in ("GET", "DELETE")

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return " ".join((inspect.getdoc(self.function) or "").split("\n\n")[0].split())

    def path_arguments(self, path: Sequence[str]) -> dict[str, str] | None:
        """Return the arguments in a path; None: the path is another one."""
        if len(path) != len(self.segments):
            return None
        found = {}
        for segment, given in zip(self.segments, path, strict=True):
            if segment.startswith("{"):
                found[segment[1:-1]] = given
            elif segment != given:
                return None
        return found

    def checked(self, texts: Mapping[str, str], values: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of a call from texts (path, query) and values (body).

        Raises:
            Problem: an argument is unknown, missing or wrong.
        """
        for name in (*texts, *values):
            if name not in self.arguments or (name in values and name in texts):
                known = ", ".join(one for one in self.arguments if one not in self.in_path) or "none"
                raise bad_request(f"{self.method} {self.path} has no argument {name[:100]!r}; it has: {known}")
        given = dict(values)
        given |= {name: self.arguments[name].parsed(text) for name, text in texts.items()}
        for name, argument in self.arguments.items():
            if name in given:
                argument.check(given[name])
            elif argument.is_required:
                raise bad_request(f"{self.method} {self.path} needs {name}")
        return given

    def call(self, controls: Controls, arguments: Mapping[str, object]) -> object:
        """Perform the operation and return its result, as JSON values."""
        if not self._is_passive:
            controls.requests.begin()
        target = getattr(controls, self._of) if self._of else controls
        return self.result.convert(self.function(target, **arguments))


def _arguments(function: Callable[..., Any]) -> list[Argument]:
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    hints = _hints(function, parameters)
    found = []
    for name, parameter in parameters.items():
        hint = hints[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            assert get_origin(hint) is Unpack, "the options of rules and filters"
            (options,) = get_args(hint)
            found += [
                Argument(one, schema_of(type_), False)
                for one, type_ in _hints(options, options.__annotations__).items()
            ]
        else:
            is_required = parameter.default is parameter.empty
            schema = schema_of(hint) | LIMITS.get(name, {})
            if not is_required and parameter.default is not None:
                schema["default"] = parameter.default
            found.append(Argument(name, schema, is_required))
    return found


def _hints(annotated: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the types of some arguments of a function, or of items of a TypedDict."""
    texts = {name: annotated.__annotations__[name] for name in names}
    return get_type_hints(SimpleNamespace(__annotations__=texts), vars(sys.modules[annotated.__module__]) | KNOWN_HERE)
