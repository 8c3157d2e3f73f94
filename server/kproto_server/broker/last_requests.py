"""The newest requests of a broker as text, those with errors first: for the report of a test that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.declaration import Struct, fields_of
from kproto.errors import ProtocolError
from kproto_server.observation.logged import NotKept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from kproto_server.observation.logged import LoggedRequest

WITH_ERRORS_MAX, OTHERS_MAX = 5, 10
SEARCHED_MAX = 1000
"""Requests among which those with errors are looked for: each response has to be decoded."""
BODY_MAX_CHARACTERS = 400
BYTES_MAX = 40


def last_requests(requests: Iterable[LoggedRequest]) -> str:
    """Return the newest requests as text, those with errors first."""
    newest = list(requests)[-SEARCHED_MAX:]
    if not newest:
        return "no client has sent a request"
    with_errors = [one for one in newest if one.error_codes][-WITH_ERRORS_MAX:]
    shown = {one.number for one in with_errors}
    others = [one for one in newest[-OTHERS_MAX:] if one.number not in shown]
    parts = []
    if with_errors:
        parts.append(f"The newest requests with errors:\n{_list(with_errors, newest)}")
    if others:
        parts.append(f"The newest {'other ' if with_errors else ''}requests:\n{_list(others, newest)}")
    return "\n".join(parts)


def _list(chosen: Sequence[LoggedRequest], newest: Sequence[LoggedRequest]) -> str:
    return "\n".join(_described(one, newest[-1].time_ms) for one in chosen)


def _described(one: LoggedRequest, end_ms: int) -> str:
    outcome = "no response" if one.responded_ms is None else ", ".join(one.error_names) or "no error"
    seconds = (one.time_ms - end_ms) / 1000
    of = f"v{one.api_version} of {one.client_id!r} at node {one.node_id}"
    lines = [f"{one.number}. {one.api} {of}, {seconds:.3f} s: {outcome}", f"   {_shown(lambda: one.request)}"]
    if one.response_frame is not None:
        lines.append(f"   {_shown(lambda: one.response)}")
    return "\n".join(lines)


def _text(value: Any) -> str:
    """Return a value of a message as its `repr`, without the fields that have their defaults."""
    if isinstance(value, Struct):
        defaults: Mapping[str, Any] = type(value)._defaults  # type: ignore[attr-defined]  # of each declared class
        names = (one.name for one in fields_of(type(value)))
        pairs = ((name, getattr(value, name)) for name in names)
        shown = (f"{name}={_text(one)}" for name, one in pairs if name not in defaults or one != defaults[name])
        return f"{type(value).__name__}({', '.join(shown)})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (bytes, memoryview)) and len(value) > BYTES_MAX:
        return f"{bytes(value[:BYTES_MAX])!r}... ({len(value)} bytes)"
    return repr(value)


def _shown(read: Callable[[], object]) -> str:
    try:
        text = _text(read())
    except (ProtocolError, NotKept) as error:
        return f"({type(error).__name__}: {error})"
    return text if len(text) <= BODY_MAX_CHARACTERS else f"{text[:BODY_MAX_CHARACTERS]}... ({len(text)} characters)"
