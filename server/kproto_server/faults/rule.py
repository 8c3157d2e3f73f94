"""A fault rule as a test writes it, and the checks that it can match a request and that its action is possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import VersionRange
from kproto.errors import UsageError
from kproto.messages import APIS
from kproto_server.faults.checked_rule import Action, Checked, Conditions
from kproto_server.faults.items import Selection
from kproto_server.faults.room import apis_named, requests_without_room
from kproto_server.observation.conditions import (
    INT32_MAX,
    ON_NAMES,
    api_key_named,
    check_names,
    check_node,
    check_number,
    check_type,
    error_named,
    listed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kproto_server.releases.kafka_version import KafkaVersion


class FaultRule(TypedDict, total=False):
    """A fault rule: conditions on requests, which ones of those, and one action. All conditions have to be met."""

    api: str | int
    """Kafka's name of an API, or its key: ``"OffsetCommit"``."""
    versions: str | int
    """Versions of the API: ``3``, ``"0-4"`` or ``"5-"``."""
    client_id: str
    software_name: str
    """From ApiVersions v3 and later: ``"librdkafka"``."""
    software_version: str
    node_id: int
    """The node that receives the request."""
    topic: str
    """A topic that the request names, or whose id it has. An error then is for this topic only."""
    partition: int
    """A partition that the request names; with ``topic``, a partition of that topic."""
    group: str
    member: str
    transactional_id: str

    nth: int
    """Begin with the nth request that meets the conditions. Without ``times``, this request is the only one."""
    times: int
    """Act on so many requests, then no more."""
    probability: float
    """Act on a request with this probability, above 0 and up to 1."""
    seed: int
    """Determines the requests that ``probability`` selects; 0 by default."""
    after_ms: int
    """Begin so many milliseconds of the broker's time after the rule is added."""
    for_ms: int
    """End so many milliseconds of the broker's time after the beginning."""

    error: str | int
    """Respond with this error code, by Kafka's name or by number."""
    place: Literal["response", "items"]
    """Where the error stands: in the response itself, or in its items, such as partitions. Default: where brokers put
    this error."""
    delay_ms: int
    """Wait so many milliseconds of the broker's time; alone, or before another action."""
    no_response: bool
    """Never respond, and keep the connection open."""
    close: bool
    """Close the connection instead of responding."""
    reset: bool
    """Reset the connection (TCP RST) instead of responding."""
    when: Literal["before", "after"]
    """Of `delay_ms`, `error`, `no_response`, `close` and `reset`: act before the request takes effect (default), or
    after it."""
    truncate_bytes: int
    """Send only so many bytes of the response, its size included, then close the connection."""
    chunk_bytes: int
    """Send the response in pieces of so many bytes."""
    chunk_interval_ms: int
    """Wait so many milliseconds of the broker's time between two pieces; 1 by default."""
    corrupt: Literal["length", "checksum"]
    """Send a negative size of the response, or records with a wrong checksum."""
    unknown_tags: bool
    """Respond with a tagged field that no Kafka release has, in each struct of a flexible version (KIP-482)."""
    magic: int
    """Respond with records in this message format version, 0 or 1, as a log has them that an older broker wrote."""
    empty: str
    """Respond with no elements in the arrays, no bytes in the records, of this name: ``"brokers"``."""
    null: str
    """Respond with null in the arrays, the records of this name, where the version allows it."""
    stale: bool
    """Respond with the leaders and the coordinators of the time at which the rule was added."""
    leader: int
    """Respond with this node as the leader of the topic, or of all topics."""
    coordinator: int
    """Respond with this node as the coordinator."""
    throttle_ms: int
    """Respond with this throttle time, then ignore the connection for so long, as a broker enforces a quota."""
    freeze: bool
    """Respond to heartbeats as if all was well, and have them take no effect: the member's session expires."""
    max_versions: Mapping[str, int | None]
    """Respond with these greatest versions of APIs; None: the API is not listed."""


METADATA, FIND_COORDINATOR, API_VERSIONS, DESCRIBE_TOPIC_PARTITIONS = 3, 10, 18, 75
HEARTBEATS = 12, 68, 76, 88
"""Heartbeat, ConsumerGroupHeartbeat, ShareGroupHeartbeat and StreamsGroupHeartbeat."""
ON_FIELDS = ("client_id", "software_name", "software_version", "node_id")
CONDITIONS = ("api", "versions", *ON_FIELDS, *ON_NAMES)
COUNTS = ("nth", "times", "probability", "seed", "after_ms", "for_ms")
DELAY = "delay_ms"
ACTIONS = (
    "error", "no_response", "close", "reset", "truncate_bytes", "chunk_bytes", "corrupt", "unknown_tags", "magic",
    "empty", "null", "stale", "leader", "coordinator", "throttle_ms", "freeze", "max_versions",
)  # fmt: skip
"""Of these a rule has one, or only a delay."""
OPTIONS: dict[str, tuple[str, ...]] = {
    "place": ("error",),
    "when": ("error", "no_response", "close", "reset", DELAY),
    "chunk_interval_ms": ("chunk_bytes",),
    "seed": ("probability",),
}
"""Options, and what has them."""
CHOICES = {"place": ("response", "items"), "when": ("before", "after"), "corrupt": ("length", "checksum")}
MAGICS = (0, 1)
FIELDS = ("empty", "null")
"""Actions that name a field of the response."""
FLAGS = ("no_response", "close", "reset", "unknown_tags", "stale", "freeze")
LEAST = dict.fromkeys(("nth", "times", "for_ms", "chunk_bytes", DELAY, "throttle_ms"), 1)
OWN_APIS: dict[str, tuple[int, ...]] = {
    "stale": (METADATA, FIND_COORDINATOR, DESCRIBE_TOPIC_PARTITIONS),
    "leader": (METADATA, DESCRIBE_TOPIC_PARTITIONS),
    "coordinator": (FIND_COORDINATOR,),
    "freeze": HEARTBEATS,
    "max_versions": (API_VERSIONS,),
}
"""Actions on the responses of few APIs, which need not be named."""


def checked(given: Mapping[str, Any], kafka_version: KafkaVersion, node_ids: Collection[int]) -> Checked:
    """Return a rule in the form in which it is applied.

    Raises:
        UsageError: a name or value is wrong, no request can meet the conditions, or the action is not possible; the
            text says why.
    """
    for name, value in given.items():
        _check(name, value)
    kind = _kind_of_action(given)
    _check_options(given, kind)
    conditions = _conditions(given, kind, kafka_version)
    for name in ("node_id", "leader", "coordinator"):
        if name in given:
            check_node(given[name], node_ids)
    action = Action(
        kind,
        _error(given["error"]) if kind == "error" else given[kind],
        0 if kind == DELAY else given.get(DELAY, 0),
        given.get("when") == "after",
        given.get("place"),
        given.get("chunk_interval_ms", 1),
    )
    return Checked(
        conditions._replace(without_room=requests_without_room(conditions, action, kafka_version)),
        action,
        given.get("nth", 1),
        given.get("times", 1 if "nth" in given else None),
        given.get("probability"),
        given.get("seed", 0),
        given.get("after_ms", 0),
        given.get("for_ms"),
    )


def _check(name: str, value: object) -> None:
    """Refuse an argument that does not exist, or a value of another type."""
    if name in ("api", "error", *ON_FIELDS, *ON_NAMES):
        check_type(name, value)
    elif name in FLAGS:
        if value is not True:
            raise UsageError(f"{name} is true or not given, not {value!r}")
    elif name in CHOICES:
        if value not in CHOICES[name]:
            raise UsageError(f"{name} is {' or '.join(CHOICES[name])}, not {value!r}")
    elif name == "probability":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise UsageError(f"probability is a number above 0 and up to 1, not {value!r}")
    elif name in FIELDS:
        if not isinstance(value, str):
            raise UsageError(f"{name} is the name of a field, not {value!r}")
    elif name == "magic":
        if value not in MAGICS or isinstance(value, bool):
            raise UsageError(f"magic is 0 or 1, not {value!r}")
    elif name == "max_versions":
        _check_max_versions(value)
    elif name == "versions":
        _versions(value)
    elif name in (*COUNTS, *ACTIONS, DELAY, "chunk_interval_ms"):
        check_number(name, value, LEAST.get(name, 0))
    else:
        raise UsageError(
            f"a fault rule has no {name!r}: conditions are {listed((*CONDITIONS, *COUNTS))}; "
            f"actions are {listed((DELAY, *ACTIONS))}; options of actions are {listed(('place', 'when'))} "
            "and chunk_interval_ms"
        )


def _check_max_versions(value: object) -> None:
    if not isinstance(value, dict) or not value:
        raise UsageError(f"max_versions has a greatest version for each of some APIs, not {value!r}")
    for api, version in value.items():
        if not isinstance(api, str):
            raise UsageError(f"max_versions has names of APIs, not {api!r}")
        api_key_named(api)
        if version is not None:
            check_number(f"the greatest version of {api}", version)


def _versions(value: object) -> VersionRange:
    """Return a range given as ``3``, ``"0-4"`` or ``"5-"``."""
    first, dash, last = str(value).partition("-")
    if not isinstance(value, bool) and isinstance(value, (int, str)) and first.isdecimal():
        if not dash:
            return VersionRange(int(first), int(first))
        if not last:
            return VersionRange(int(first))
        if last.isdecimal() and int(first) <= int(last):
            return VersionRange(int(first), int(last))
    raise UsageError(f"versions is a version or a range such as '0-4' or '5-', not {value!r}")


def _kind_of_action(given: Mapping[str, Any]) -> str:
    kinds = [name for name in ACTIONS if name in given]
    if len(kinds) > 1:
        raise UsageError(f"a fault rule has one action, not {listed(kinds)}: add a rule for each")
    if not kinds and DELAY not in given:
        raise UsageError(f"a fault rule needs an action: one of {listed((DELAY, *ACTIONS))}")
    return kinds[0] if kinds else DELAY


def _check_options(given: Mapping[str, Any], kind: str) -> None:
    for option, owners in OPTIONS.items():
        if option in given and kind not in owners and not any(owner in given for owner in owners):
            raise UsageError(f"{option} is an option of {listed(owners)}, not of {kind}")
    if kind == "freeze" and given.get("when") == "after":
        raise UsageError("a heartbeat that freeze acts on takes no effect: when can't be after")


def _conditions(given: Mapping[str, Any], kind: str, kafka_version: KafkaVersion) -> Conditions:
    versions = _versions(given["versions"]) if "versions" in given else VersionRange(0, INT32_MAX)
    on_names = {name: given[name] for name in ON_NAMES if name in given}
    api_keys: frozenset[int] | None = None
    if "api" in given:
        key = api_key_named(given["api"])
        _check_served(key, versions, given.get("versions"), kafka_version)
        check_names(key, on_names, ("api", "versions", *ON_FIELDS))
        if kind in OWN_APIS and key not in OWN_APIS[kind]:
            raise UsageError(f"{kind} is an action on {apis_named(OWN_APIS[kind])}, not on {APIS[key]}")
        api_keys = frozenset({key})
    elif kind in OWN_APIS:
        api_keys = frozenset(OWN_APIS[kind]) & kafka_version.api_versions.keys()
        if not api_keys:
            raise UsageError(f"Kafka version {kafka_version.name} does not serve {apis_named(OWN_APIS[kind])}")
        for name in on_names:
            if not any(_has_name(key, name) for key in api_keys):
                raise UsageError(f"{apis_named(OWN_APIS[kind])} has no {name.replace('_', ' ')}")
    elif "versions" in given:
        raise UsageError("versions needs an api: each API has versions of its own")
    fields = {name: given[name] for name in ON_FIELDS if name in given}
    return Conditions(api_keys, versions, fields, on_names)


def _error(given: str | int) -> ErrorCode:
    error = error_named(given)
    if error == ErrorCode.NONE:
        raise UsageError("error is an error code, not NONE (0)")
    return error


def _has_name(api_key: int, name: str) -> bool:
    try:
        check_names(api_key, (name,), ())
    except UsageError:
        return False
    return True


def _check_served(api_key: int, versions: VersionRange, given: object, kafka_version: KafkaVersion) -> None:
    served = [version for version in registry.versions(api_key) if kafka_version.serves(api_key, version)]
    if not served:
        raise UsageError(f"Kafka version {kafka_version.name} does not serve {APIS[api_key]}")
    if not any(versions.covers(version) for version in served):
        raise UsageError(
            f"Kafka version {kafka_version.name} serves {APIS[api_key]} in versions {served[0]} to {served[-1]}, "
            f"not {given}"
        )


def selection_of(conditions: Conditions, name_of_topic: Callable[[bytes], str | None]) -> Selection:
    """Return the items of a request that conditions are about; ``name_of_topic``: as in `Selection`."""
    names: Mapping[str, Any] = conditions.names
    return Selection(
        topic=names.get("topic"),
        partition=names.get("partition"),
        group=names.get("group"),
        member=names.get("member"),
        transactional_id=names.get("transactional_id"),
        name_of_topic=name_of_topic,
    )
