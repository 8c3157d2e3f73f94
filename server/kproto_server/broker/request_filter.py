"""Conditions on logged requests: each is checked when it is given, and met or not by a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from kproto.codes import ErrorCode
from kproto.errors import ProtocolError, UsageError
from kproto.messages import APIS
from kproto_server.observation.logged import NO_HEADER, NotKept
from kproto_server.observation.named import Kind, kinds_named_by, names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kproto_server.observation.logged import LoggedRequest
    from kproto_server.observation.named import Names

KEYS = {name: key for key, name in APIS.items()}
INT32_MAX = 2**31 - 1


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
ON_NAMES = {
    "topic": Kind.TOPIC,
    "partition": Kind.PARTITION,
    "group": Kind.GROUP,
    "member": Kind.MEMBER,
    "transactional_id": Kind.TRANSACTIONAL_ID,
}
"""Filters that look at what the decoded request names."""
FILTERS = ("api", *ON_FIELDS, "error", *ON_NAMES)
NUMBERS = ("version", "node_id", "partition")


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
        _check_type(name, value)
    key = _api_key(wanted["api"]) if "api" in wanted else None
    error = _error_code(wanted["error"]) if "error" in wanted else None
    node_id = wanted.get("node_id")
    if node_id is not None and node_id not in subjects.node_ids:
        raise UsageError(f"node {node_id} does not exist: there are nodes {_listed(sorted(subjects.node_ids))}")
    on_names = [name for name in ON_NAMES if name in wanted]
    if key is not None:
        _check_names(key, on_names)
    on_fields = [(field, wanted[name]) for name, field in ON_FIELDS.items() if name in wanted]

    def is_met(request: LoggedRequest) -> bool:
        return (
            key in (None, request.api_key)
            and all(getattr(request, field) == value for field, value in on_fields)
            and (not on_names or _names_match(request, wanted, subjects))
            and (error is None or _has_error(request, error))
        )

    return is_met


def _check_type(name: str, value: object) -> None:
    if name in NUMBERS:
        if type(value) is not int or not 0 <= value <= INT32_MAX:
            raise UsageError(f"{name} is a number from 0 on, not {value!r}")
    elif name in ("api", "error"):
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise UsageError(f"{name} is a name or a number, not {value!r}")
    elif not isinstance(value, str):
        raise UsageError(f"{name} is a string, not {value!r}")


def _check_names(api_key: int, on_names: list[str]) -> None:
    """Refuse filters on names that no request of an API has."""
    kinds = frozenset[Kind]() if api_key == NO_HEADER else kinds_named_by(api_key)
    for name in on_names:
        if ON_NAMES[name] not in kinds:
            possible = [*("api", *ON_FIELDS, "error"), *(name for name, kind in ON_NAMES.items() if kind in kinds)]
            api = APIS.get(api_key, "a frame without header")
            raise UsageError(f"{api} has no {name.replace('_', ' ')}: its filters are {', '.join(possible)}")


def _api_key(api: str | int) -> int:
    if isinstance(api, int):
        if api not in APIS and api != NO_HEADER:
            raise UsageError(f"there is no API {api}: use {_listed(APIS)}, or {NO_HEADER} for frames without header")
        return api
    if api not in KEYS:
        raise UsageError(f"there is no API {api!r}: use {_listed(KEYS)}")
    return KEYS[api]


def _error_code(error: str | int) -> int:
    try:
        return int(ErrorCode[error] if isinstance(error, str) else ErrorCode(error))
    except (KeyError, ValueError):
        raise UsageError(
            f"there is no error {error!r}: use {', '.join(f'{code.name} ({int(code)})' for code in ErrorCode)}"
        ) from None


def _listed(values: Collection[object]) -> str:
    return ", ".join(map(str, values))


def _names_match(request: LoggedRequest, wanted: Mapping[str, Any], subjects: Subjects) -> bool:
    try:
        names = names_in(request.request)
    except (ProtocolError, NotKept):
        return False
    return (
        _topics_match(names, wanted, subjects.topic_names)
        and wanted.get("group") in (None, *names.groups)
        and wanted.get("member") in (None, *names.members)
        and wanted.get("transactional_id") in (None, *names.transactional_ids)
    )


def _topics_match(names: Names, wanted: Mapping[str, Any], topic_names: Mapping[bytes, str]) -> bool:
    topic, partition = wanted.get("topic"), wanted.get("partition")

    def is_topic(named: str | bytes) -> bool:
        return topic in (None, named if isinstance(named, str) else topic_names.get(named))

    if partition is not None:
        return any(number == partition and is_topic(named) for named, number in names.partitions)
    return topic is None or any(map(is_topic, names.topics))


def _has_error(request: LoggedRequest, error: int) -> bool:
    if error:
        return error in request.error_codes
    return request.responded_ms is not None and not request.error_codes
