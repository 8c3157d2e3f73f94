"""Which responses have room for the action of a fault rule: the rule is about no others, and needs one at least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto.errors import UsageError
from kproto.messages import APIS
from kproto_server.faults.changes import emptied_fields, has_records
from kproto_server.faults.items import has_field, levels_of
from kproto_server.observation.conditions import listed

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.faults.checked_rule import Action, Conditions
    from kproto_server.releases.kafka_version import KafkaVersion

ACTIONS = ("corrupt", "unknown_tags", "magic", "empty", "null")
"""Actions that some responses have no room for, as have errors whose place the rule names."""
LENGTH = "length"
"""The value of ``corrupt`` that is about the frame of any response."""


def apis_named(api_keys: Collection[int]) -> str:
    """Return the names of APIs as an error text lists them."""
    return " and ".join(APIS[key] for key in api_keys)


def requests_without_room(
    conditions: Conditions, action: Action, kafka_version: KafkaVersion
) -> frozenset[tuple[int, int]]:
    """Return the API keys and versions whose response has nothing that the action changes.

    Raises:
        UsageError: these are all that a request which meets the conditions may have.
    """
    is_throttling = action.kind == "throttle_ms" and conditions.api_keys is not None
    is_error_with_place = action.kind == "error" and action.place is not None
    if not (action.kind in ACTIONS or is_throttling or is_error_with_place) or action.value == LENGTH:
        return frozenset()
    requests = [
        (key, version)
        for key in (APIS if conditions.api_keys is None else conditions.api_keys)
        for version in registry.versions(key)
        if conditions.versions.covers(version)
    ]
    without = frozenset(request for request in requests if not _has_room(action, *request))
    served = [request for request in requests if kafka_version.serves(*request)]
    if without.issuperset(served):
        raise UsageError(_reason(conditions, action, served))
    return frozenset() if is_throttling else without  # without a field for the time, the client waits, too


def _has_room(action: Action, api_key: int, api_version: int) -> bool:
    response = registry.response_class(api_key)
    match action.kind:
        case "throttle_ms":
            return has_field(api_key, api_version, "throttle_time_ms")
        case "unknown_tags":
            return response._flexible.covers(api_version)
        case "magic" | "corrupt":
            return has_records(api_key)
        case "empty" | "null":
            return action.value in emptied_fields(response, api_version, is_null=action.kind == "null")
    if action.place == "response":
        return has_field(api_key, api_version, "error_code")
    return any(level.has_error for level in levels_of(api_key, api_version))


def _reason(conditions: Conditions, action: Action, served: Collection[tuple[int, int]]) -> str:
    """Return why no response has room for an action; ``served``: API keys and versions that meet the conditions."""
    of_apis = (
        "the response of any API"
        if conditions.api_keys is None
        else f"the response of {apis_named(conditions.api_keys)}"
    )
    match action.kind:
        case "throttle_ms":
            return f"{of_apis} has no throttle_time_ms in these versions"
        case "unknown_tags":
            return f"{of_apis} has no tagged fields in these versions"
        case "magic":
            return f"{of_apis} has no records"
        case "corrupt":
            return f"{of_apis} has no records, whose checksum could be corrupt"
        case "empty" | "null":
            return _reason_of_field(conditions, action, served, of_apis)
    where = "no error code of its own" if action.place == "response" else "no items with error codes"
    return f"{of_apis} has {where} in these versions"


def _reason_of_field(conditions: Conditions, action: Action, served: Collection[tuple[int, int]], of_apis: str) -> str:
    is_null = action.kind == "null"
    what = "be null" if is_null else "be empty"
    if conditions.api_keys is None:  # hundreds of fields can
        return f"no response has a field {action.value!r} that can {what}"
    names: set[str] = set()
    for key, version in served:
        names |= emptied_fields(registry.response_class(key), version, is_null=is_null)
    some = f"only in {listed(sorted(names))}" if names else "in no field"
    return f"{of_apis} can {what} {some}, not in {action.value!r}"
