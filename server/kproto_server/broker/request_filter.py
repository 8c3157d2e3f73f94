"""Conditions on logged requests: each is checked when it is given, and met or not by a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from kproto.errors import ProtocolError, UsageError
from kproto_server.observation.conditions import (
    ON_NAMES,
    api_key_named,
    check_names,
    check_node,
    check_type,
    error_named,
    names_meet,
)
from kproto_server.observation.logged import NO_HEADER, NotKept
from kproto_server.observation.named import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kproto_server.observation.logged import LoggedRequest


class RequestFilter(TypedDict, total=False):
    """Conditions on a request; a request has to meet all that are given."""

    api: str | int
    """Kafka's name of an API, or its key: ``"OffsetCommit"``; -1: the frame has no readable header."""
    version: int
    client_id: str
    software_name: str
    """From ApiVersions v3 and later: ``"librdkafka"``; empty for clients that did not send it."""
    software_version: str
    node_id: int
    """The node that received the request."""
    error: str | int
    """An error code in the response, by number or by Kafka's name; 0: a response without error codes."""
    topic: str
    """A topic that the request names, or whose id it has. An incremental Fetch names only what has changed."""
    partition: int
    """A partition that the request names; with ``topic``, a partition of that topic."""
    group: str
    """A group id that the request names."""
    member: str
    """A member id that the request names."""
    transactional_id: str
    """A transactional id that the request names."""


class Subjects(NamedTuple):
    """What the broker knows of the names in its requests."""

    node_ids: Collection[int]
    topic_names: Mapping[bytes, str]
    """Topic id -> name, of deleted topics too."""


ON_FIELDS = {
    "version": "api_version",
    "client_id": "client_id",
    "software_name": "software_name",
    "software_version": "software_version",
    "node_id": "node_id",
}
"""Filters that compare a field of `LoggedRequest`, which has this name."""
FILTERS = ("api", *ON_FIELDS, "error", *ON_NAMES)


def request_filter(
    wanted: Mapping[str, Any], subjects: Subjects, others: tuple[str, ...] = ()
) -> Callable[[LoggedRequest], bool]:
    """Return a function that says whether a request meets the conditions; ``others``: further arguments of the caller.

    Raises:
        UsageError: there is no such filter, API, error or node, a value has another type, or no request of the API can
            meet the condition; the text lists what there is.
    """
    for name, value in wanted.items():
        if name not in FILTERS:
            raise UsageError(f"there is no filter {name!r}: use {', '.join((*FILTERS, *others))}")
        check_type(name, value)
    no_header = f", or {NO_HEADER} for frames without header"
    key = api_key_named(wanted["api"], (NO_HEADER,), no_header) if "api" in wanted else None
    error = error_named(wanted["error"]) if "error" in wanted else None
    if "node_id" in wanted:
        check_node(wanted["node_id"], subjects.node_ids)
    on_names = [name for name in ON_NAMES if name in wanted]
    if key is not None:
        check_names(key, on_names, ("api", *ON_FIELDS, "error"))
    on_fields = [(field, wanted[name]) for name, field in ON_FIELDS.items() if name in wanted]

    def is_met(request: LoggedRequest) -> bool:
        return (
            key in (None, request.api_key)
            and all(getattr(request, field) == value for field, value in on_fields)
            and (not on_names or _names_match(request, wanted, subjects))
            and (error is None or _has_error(request, error))
        )

    return is_met


def _names_match(request: LoggedRequest, wanted: Mapping[str, Any], subjects: Subjects) -> bool:
    try:
        names = names_in(request.request)
    except (ProtocolError, NotKept):
        return False
    return names_meet(names, wanted, subjects.topic_names.get)


def _has_error(request: LoggedRequest, error: int) -> bool:
    if error:
        return error in request.error_codes
    return request.responded_ms is not None and not request.error_codes
