"""How two responses to the same request differ, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.codes import ErrorCode
from kproto_server.comparison import VARIES_BY_RUN, comparable, differences
from kproto_server.observation.error_codes import error_codes

if TYPE_CHECKING:
    from kproto.message import Response
    from kproto_server.replay.conversations import Exchange

NOTHING = "no response"
CLOSED = "connection closed"
OTHER_LAYOUT = "not in the layout of its version"


class Differing(NamedTuple):
    """A response that differs."""

    connection: int
    client_id: str
    request: int
    """Number of the request on its connection, from 1 on."""
    name: str
    """API and version."""
    rows: tuple[tuple[str, str, str], ...]
    """Path of a field, its value, and the other value; the path is empty for the response itself."""


def response_rows(exchange: Exchange, one: bytes, other: bytes) -> tuple[tuple[str, str, str], ...]:
    """Return the rows of two responses to a request; none if they are alike, or their layout is not known."""
    if exchange.header is None:
        return ()
    first, second = exchange.decoded(one), exchange.decoded(other)
    if first is None or second is None:
        texts = [OTHER_LAYOUT if each is None else "" for each in (first, second)]
        return () if first is second else (("", texts[0], texts[1]),)
    forms = [comparable(each, str, VARIES_BY_RUN) for each in (first, second)]
    return tuple(
        (path, _shown(path, value), _shown(path, another)) for path, value, another in differences(forms[0], forms[1])
    )


def is_transient(response: Response | None) -> bool:
    """Return whether a response has an error after which clients send the request again."""
    return response is not None and any(map(_is_retriable, error_codes(response)))


def _is_retriable(code: int) -> bool:
    try:
        return ErrorCode(code).retriable
    except ValueError:
        return False


def _shown(path: str, value: Any) -> str:
    if value is None:
        return "0" if path.endswith("error_code") else "-"
    if path.endswith("error_code"):
        try:
            return ErrorCode(value).name
        except ValueError:
            return str(value)
    return str(value)
