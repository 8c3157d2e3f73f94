"""How the results of operations become JSON: each has a schema, and a function that converts values of Python."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import Struct, fields_of
from kproto.errors import ProtocolError
from kproto_server.broker.acls import AclDescription
from kproto_server.broker.quotas import QuotaDescription
from kproto_server.control.schema import INTEGER, STRING, Schema, a_list, an_object
from kproto_server.observation.logged import LoggedRequest, NotKept

if TYPE_CHECKING:
    from kproto_server.broker.faults import BrokerFault
    from kproto_server.broker.group_members import GroupMember
    from kproto_server.broker.topic_description import TopicDescription


class Result(NamedTuple):
    """The result of an operation."""

    text: str
    """What it is, for OpenAPI."""
    schema: Schema | None = None
    """None: no content, or content that is no JSON."""
    convert: Callable[[Any], object] = lambda value: value
    content_type: str = "application/json"
    status: int = 200


NODE: Schema = {"type": ["integer", "null"]}
NOTHING = Result("done", None, status=204)


def _named(text: str, name: str, schema: Schema) -> Result:
    return Result(text, an_object({name: schema}), lambda value: {name: value})


def _of_partitions(text: str, name: str) -> Result:
    row = an_object({"topic": STRING, "partition": INTEGER, name: INTEGER})

    def convert(found: Mapping[tuple[str, int], int]) -> object:
        return {
            "partitions": [
                {"topic": topic, "partition": partition, name: value}
                for (topic, partition), value in sorted(found.items())
            ]
        }

    return Result(text, an_object({"partitions": a_list(row)}), convert)


VARIABLES: Schema = {"type": "object", "additionalProperties": STRING}
CLIENT_VARIABLES = _named("environment variables by name", "variables", VARIABLES)
TIME = _named("the broker's time in milliseconds since the epoch", "now_ms", INTEGER)
STATE = _named("Kafka's name of the state", "state", STRING)
NODE_ID = _named("the id of a node; null: none", "node_id", NODE)
OFFSETS = _of_partitions("offsets by partition", "offset")
LAGS = _of_partitions("lags in records by partition", "lag")


def _members(members: tuple[GroupMember, ...]) -> object:
    partitions = [
        member._asdict()
        | {"partitions": [{"topic": topic, "partition": partition} for topic, partition in member.partitions]}
        for member in members
    ]
    return {"members": partitions}


_MEMBER = an_object(
    {
        "member_id": STRING,
        "client_id": STRING,
        "group_instance_id": {"type": ["string", "null"]},
        "partitions": a_list(an_object({"topic": STRING, "partition": INTEGER})),
    }
)
_GROUP = an_object(
    {
        **dict.fromkeys(("group_id", "kind", "state", "protocol_type"), STRING),
        **dict.fromkeys(("generation", "member_count"), INTEGER),
    }
)
GROUPS = Result(
    "the groups, by id",
    an_object({"groups": a_list(_GROUP)}),
    lambda found: {"groups": [one._asdict() for one in found]},
)
MEMBER_ID = _named("the id of the member", "member_id", STRING)
MEMBERS = Result("the members with their assignments", an_object({"members": a_list(_MEMBER)}), _members)

_PARTITION = an_object(
    {
        **dict.fromkeys(
            ("partition", "leader_epoch", "start_offset", "end_offset", "last_stable_offset", "size_bytes"), INTEGER
        ),
        "leader": NODE,
        **dict.fromkeys(("replicas", "in_sync_replicas"), a_list(INTEGER)),
    }
)
_TOPIC = an_object(
    {
        **dict.fromkeys(("topic", "topic_id"), STRING),
        "is_internal": {"type": "boolean"},
        "configs": {"type": "object", "additionalProperties": STRING},
        "partitions": a_list(_PARTITION),
    }
)


def _topic(topic: TopicDescription) -> object:
    return topic._asdict() | {"partitions": [one._asdict() for one in topic.partitions]}


TOPIC = Result("the topic with its partitions", _TOPIC, _topic)
NEW_TOPIC = TOPIC._replace(status=201)
TOPICS = Result(
    "the topics, by name",
    an_object({"topics": a_list(_TOPIC)}),
    lambda found: {"topics": [_topic(one) for one in found]},
)
START_OFFSETS = _of_partitions("the first offsets that can be read, by partition", "offset")

_FAULT = an_object(
    {"number": INTEGER, "rule": {"type": "object"}, "fired": INTEGER, "matched": INTEGER, "text": STRING}
)


def _fault(fault: BrokerFault) -> object:
    return {
        "number": fault.number,
        "rule": fault.given,
        "fired": fault.fired,
        "matched": fault.matched,
        "text": repr(fault),
    }


FAULT = Result("a fault rule with its counts", _FAULT, _fault)
NEW_FAULT = FAULT._replace(status=201)
FAULTS = Result(
    "the fault rules, oldest first",
    an_object({"faults": a_list(_FAULT)}),
    lambda faults: {"faults": [_fault(one) for one in faults]},
)


ACLS = Result(
    "the ACLs, the oldest first",
    an_object({"acls": a_list(an_object(dict.fromkeys(AclDescription._fields, STRING)))}),
    lambda acls: {"acls": [one._asdict() for one in acls]},
)
_QUOTA = {
    name: {"type": ["string", "null"] if number < 3 else ["number", "string", "null"]}
    for number, name in enumerate(QuotaDescription._fields)
}
"""A string instead of a number is NaN, Infinity or -Infinity."""
QUOTAS = Result(
    "the client quotas, in the order in which entities had their first one; an empty name: the default; "
    "a number that JSON does not have is a string: NaN or Infinity",
    an_object({"quotas": a_list(an_object(_QUOTA))}),
    lambda quotas: {"quotas": [one._asdict() for one in quotas]},
)
_SUBSCRIPTION = an_object({"name": STRING, "metrics": a_list(STRING), "interval_ms": INTEGER, "match": a_list(STRING)})
CLIENT_METRICS = Result(
    "the client metrics resources, in the order in which they were set first",
    an_object({"subscriptions": a_list(_SUBSCRIPTION)}),
    lambda found: {"subscriptions": [one._asdict() for one in found]},
)
_PUSH = an_object(
    {
        "time_ms": INTEGER,
        "node_id": INTEGER,
        "client_instance_id": STRING,
        "client_id": STRING,
        "software_name": STRING,
        "software_version": STRING,
        "subscription_id": INTEGER,
        "is_terminating": {"type": "boolean"},
        "compression": STRING,
        "payload": STRING,
        "content": {"type": ["string", "null"]},
    }
)
CLIENT_METRICS_PUSHES = Result(
    "the newest pushes of metrics, oldest first; `payload` and `content` in base64",
    an_object({"pushes": a_list(_PUSH)}),
    lambda found: {"pushes": [{name: plain(value) for name, value in one._asdict().items()} for one in found]},
)
REMOVED_QUOTAS = Result(
    "of how many entities quotas were removed", an_object({"removed": INTEGER}), lambda count: {"removed": count}
)
REMOVED_ACLS = Result("how many ACLs were removed", an_object({"removed": INTEGER}), lambda count: {"removed": count})


def plain(value: object) -> object:
    """Return a value of a decoded message as JSON: bytes in base64, fields by name."""
    if isinstance(value, Struct):
        values: Any = value
        return {field.name: plain(one) for field, one in zip(fields_of(type(value)), values, strict=False)}
    if isinstance(value, (bytes, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


class RequestPage(NamedTuple):
    """Some of the requests that meet the conditions."""

    found_count: int
    """How many meet them."""
    requests: tuple[LoggedRequest, ...]
    next_after: int | None
    """The number of the last request here, if there are more."""
    has_bodies: bool = True


_REQUEST = an_object(
    {
        **dict.fromkeys(("number", "time_ms", "node_id"), INTEGER),
        "responded_ms": {"type": ["integer", "null"]},
        **dict.fromkeys(("client_id", "client_host", "software_name", "software_version", "api"), STRING),
        **dict.fromkeys(("api_key", "api_version", "correlation_id"), INTEGER),
        "errors": a_list(STRING),
    },
    request={"type": ["object", "null"]},
    response={"type": ["object", "null"]},
)


def request_json(request: LoggedRequest, has_bodies: bool) -> dict[str, object]:
    """Return a request as JSON, with its decoded bodies or without."""
    found: dict[str, object] = {
        name: getattr(request, name)
        for name in (
            "number", "time_ms", "responded_ms", "node_id", "client_id", "client_host", "software_name",
            "software_version", "api", "api_key", "api_version", "correlation_id",
        )
    }  # fmt: skip
    found["errors"] = list(request.error_names)
    if has_bodies:
        for name in ("request", "response"):
            try:
                found[name] = plain(getattr(request, name))
            except (ProtocolError, NotKept):
                found[name] = None
    return found


def error_name(code: int) -> str:
    """Return Kafka's name of an error code, or its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


REQUEST = Result(
    "the request with its response, decoded, with bytes in base64",
    _REQUEST,
    lambda request: request_json(request, True),
)
REQUESTS = Result(
    "requests, oldest first, and how many there are; bodies are decoded, with bytes in base64",
    an_object({"count": INTEGER, "requests": a_list(_REQUEST), "next_after": {"type": ["integer", "null"]}}),
    lambda page: {
        "count": page.found_count,
        "requests": [request_json(one, page.has_bodies) for one in page.requests],
        "next_after": page.next_after,
    },
)
