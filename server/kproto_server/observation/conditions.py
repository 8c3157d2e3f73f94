"""Conditions on requests, for tests that look for logged requests and for fault rules: each value is checked when it is
given, so that a condition which no request can meet is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto.errors import UsageError
from kproto.messages import APIS
from kproto_server.observation.named import Kind, kinds_named_by

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kproto_server.observation.named import Names

KEYS = {name: key for key, name in APIS.items()}
INT32_MAX = 2**31 - 1
ON_NAMES = {
    "topic": Kind.TOPIC,
    "partition": Kind.PARTITION,
    "group": Kind.GROUP,
    "member": Kind.MEMBER,
    "transactional_id": Kind.TRANSACTIONAL_ID,
}
"""Conditions on what the decoded request names."""
NUMBERS = ("version", "node_id", "partition")


def check_type(name: str, value: object) -> None:
    """Refuse a value of another type than the condition has.

    Raises:
        UsageError: the text has the type.
    """
    if name in NUMBERS:
        check_number(name, value)
    elif name in ("api", "error"):
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise UsageError(f"{name} is a name or a number, not {value!r}")
    elif not isinstance(value, str):
        raise UsageError(f"{name} is a string, not {value!r}")


def check_number(name: str, value: object, least: int = 0) -> None:
    """Refuse anything but a whole number of 32 bits from ``least`` on.

    Raises:
        UsageError: the text has the least number.
    """
    if type(value) is not int or not least <= value <= INT32_MAX:
        raise UsageError(f"{name} is a number from {least} on, not {value!r}")


def api_key_named(api: str | int, others: Collection[int] = (), also: str = "") -> int:
    """Return the key of an API, given by name or key; ``others``: further keys, which the error calls ``also``.

    Raises:
        UsageError: there is no such API.
    """
    if isinstance(api, int):
        if api not in APIS and api not in others:
            raise UsageError(f"there is no API {api}: use {listed(APIS)}{also}")
        return api
    if api not in KEYS:
        raise UsageError(f"there is no API {api!r}: use {listed(KEYS)}")
    return KEYS[api]


def error_named(error: str | int) -> ErrorCode:
    """Return an error code, given by Kafka's name or its number.

    Raises:
        UsageError: there is no such error.
    """
    try:
        return ErrorCode[error] if isinstance(error, str) else ErrorCode(error)
    except (KeyError, ValueError):
        raise UsageError(
            f"there is no error {error!r}: use {', '.join(f'{code.name} ({int(code)})' for code in ErrorCode)}"
        ) from None


def check_node(node_id: int, node_ids: Collection[int]) -> None:
    """Refuse a node that does not exist.

    Raises:
        UsageError: the text lists the nodes.
    """
    if node_id not in node_ids:
        raise UsageError(f"node {node_id} does not exist: there are nodes {listed(sorted(node_ids))}")


def check_names(api_key: int, on_names: Iterable[str], other_conditions: Iterable[str]) -> None:
    """Refuse conditions on names that no request of an API has; ``other_conditions``: those that it may meet.

    Raises:
        UsageError: the text lists the conditions that the API can meet.
    """
    kinds = kinds_named_by(api_key) if api_key in APIS else frozenset[Kind]()
    for name in on_names:
        if ON_NAMES[name] not in kinds:
            possible = [*other_conditions, *(name for name, kind in ON_NAMES.items() if kind in kinds)]
            api = APIS.get(api_key, "a frame without header")
            raise UsageError(f"{api} has no {name.replace('_', ' ')}: its filters are {', '.join(possible)}")


def listed(values: Collection[object]) -> str:
    """Return values as an error text lists them."""
    return ", ".join(map(str, values))


def names_meet(names: Names, wanted: Mapping[str, Any], name_of_topic: Callable[[bytes], str | None]) -> bool:
    """Return whether the names in a request meet conditions; ``name_of_topic``: the name of the topic with an id."""
    return (
        _topics_meet(names, wanted, name_of_topic)
        and wanted.get("group") in (None, *names.groups)
        and wanted.get("member") in (None, *names.members)
        and wanted.get("transactional_id") in (None, *names.transactional_ids)
    )


def _topics_meet(names: Names, wanted: Mapping[str, Any], name_of_topic: Callable[[bytes], str | None]) -> bool:
    topic, partition = wanted.get("topic"), wanted.get("partition")

    def is_topic(named: str | bytes) -> bool:
        return topic in (None, named if isinstance(named, str) else name_of_topic(named))

    if partition is not None:
        return any(number == partition and is_topic(named) for named, number in names.partitions)
    return topic is None or any(map(is_topic, names.topics))
