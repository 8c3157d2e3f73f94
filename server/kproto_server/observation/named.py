"""What a request names: topics, partitions, groups, members and transactional ids.

Theory of operation. The fields of all APIs have Kafka's names, so the name of a field says what its values are: a
``member_id`` is a member wherever it is. `_steps_of` reads the declaration of a struct once and returns its fields that
matter; `names_in` follows these steps through a value, and `kinds_named_by` through the declaration, for filters that
no request of an API can meet.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kproto import registry
from kproto.declaration import ZERO_UUID, fields_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kproto.declaration import Field, Struct
    from kproto.message import Request


class Kind(Enum):
    """What the values of a field name."""

    TOPIC = auto()
    PARTITION = auto()
    GROUP = auto()
    MEMBER = auto()
    TRANSACTIONAL_ID = auto()
    RESOURCE = auto()
    """A topic or a group, as a field beside it says."""
    COORDINATOR_KEY = auto()
    """A group or a transactional id, as `key_type` says."""


FIND_COORDINATOR = 10
KINDS = {
    "topic": Kind.TOPIC,
    "topic_name": Kind.TOPIC,
    "topic_names": Kind.TOPIC,
    "topic_id": Kind.TOPIC,
    "subscribed_topic_names": Kind.TOPIC,
    "source_topics": Kind.TOPIC,
    "repartition_sink_topics": Kind.TOPIC,
    "partition": Kind.PARTITION,
    "partitions": Kind.PARTITION,
    "partition_index": Kind.PARTITION,
    "partition_indexes": Kind.PARTITION,
    "index": Kind.PARTITION,
    "group_id": Kind.GROUP,
    "group_ids": Kind.GROUP,
    "groups": Kind.GROUP,
    "groups_names": Kind.GROUP,
    "member_id": Kind.MEMBER,
    "transactional_id": Kind.TRANSACTIONAL_ID,
    "transactional_ids": Kind.TRANSACTIONAL_ID,
    "v3_and_below_transactional_id": Kind.TRANSACTIONAL_ID,
    "resource_name": Kind.RESOURCE,
    "resource_name_filter": Kind.RESOURCE,
}
"""What the fields with these names name."""
WIRE_TYPES: dict[Kind, tuple[str, ...]] = {Kind.TOPIC: ("string", "uuid"), Kind.PARTITION: ("int32",)}
"""The wire types of kinds that are not only strings: the number of a topic's ``partitions`` is no partition."""
TOPIC_ARRAYS = frozenset(
    {"topics", "topic_data", "v3_and_below_topics", "state_changelog_topics", "repartition_source_topics"}
)
"""Arrays whose structs are topics: their field ``name`` is the topic's."""
RESOURCE_KINDS = {2: Kind.TOPIC, 3: Kind.GROUP, 32: Kind.GROUP}
"""By resource type: of configs and of ACLs a topic, of ACLs a group, of configs a group."""
COORDINATOR_KINDS = {0: Kind.GROUP, 1: Kind.TRANSACTIONAL_ID}
"""By key type of FindCoordinator."""


class Names(NamedTuple):
    """The names in a request, each kind in wire order. A topic is a name, or an id in the versions that have ids."""

    topics: list[str | bytes]
    partitions: list[tuple[str | bytes, int]]
    """Pairs of a topic and a partition of it."""
    groups: list[str]
    members: list[str]
    transactional_ids: list[str]


class _Step(NamedTuple):
    """A field of a struct: what it names, or the struct inside it."""

    field_name: str
    kind: Kind | None
    is_array: bool
    inside: type[Struct] | None

    @property
    def is_own_topic(self) -> bool:
        """Whether the struct is a topic, whose partitions are in it; Streams numbers partitions of no topic."""
        return self.kind is Kind.TOPIC and not self.is_array


def names_in(request: Request) -> Names:
    """Return what a request names."""
    names = Names([], [], [], [], [])
    _collect(request, "", (), names)
    return names


@cache
def kinds_named_by(api_key: int) -> frozenset[Kind]:
    """Return the kinds of names that the requests of an API can have."""
    return frozenset(_declared_kinds(registry.request_class(api_key), "", in_topic=False))


def _declared_kinds(cls: type[Struct], array_name: str, *, in_topic: bool) -> Iterator[Kind]:
    for step in _steps_of(cls, array_name):
        in_topic = in_topic or step.is_own_topic
        if step.inside is not None:
            yield from _declared_kinds(step.inside, step.field_name, in_topic=in_topic)
        elif step.kind is Kind.RESOURCE:
            yield from RESOURCE_KINDS.values()
        elif step.kind is Kind.COORDINATOR_KEY:
            yield from COORDINATOR_KINDS.values()
        elif step.kind is not None and (in_topic or step.kind is not Kind.PARTITION):
            yield step.kind


_steps: dict[tuple[type[Struct], str], tuple[_Step, ...]] = {}


def _steps_of(cls: type[Struct], array_name: str) -> tuple[_Step, ...]:
    """Return the fields of a struct that matter; topics first, as the partitions beside them are theirs."""
    found = _steps.get((cls, array_name))
    if found is None:
        steps = [step for field in fields_of(cls) if (step := _step(cls, field, array_name)) is not None]
        found = _steps[cls, array_name] = tuple(sorted(steps, key=lambda step: step.kind is not Kind.TOPIC))
    return found


def _step(cls: type[Struct], field: Field, array_name: str) -> _Step | None:
    element = field.type.element or field.type
    is_array = field.type.kind == "array"
    if element.struct is not None:
        return _Step(field.name, None, is_array, element.struct)
    kind = _kind(cls, field.name, array_name)
    if kind is None or element.kind not in WIRE_TYPES.get(kind, ("string",)):
        return None
    if field.name == "partitions" and not is_array:
        return None
    return _Step(field.name, kind, is_array, None)


def _kind(cls: type[Struct], field_name: str, array_name: str) -> Kind | None:
    if field_name == "name" and array_name in TOPIC_ARRAYS:
        return Kind.TOPIC
    if getattr(cls, "_api_key", None) == FIND_COORDINATOR and field_name in ("key", "coordinator_keys"):
        return Kind.COORDINATOR_KEY
    return KINDS.get(field_name)


def _collect(struct: Any, array_name: str, topics: tuple[str | bytes, ...], names: Names) -> None:
    """Add the names in a struct; ``topics``: the name or id of the topic around it."""
    own: tuple[str | bytes, ...] = ()
    for step in _steps_of(type(struct), array_name):
        value = getattr(struct, step.field_name)
        values = (value or ()) if step.is_array else (value,)
        if step.inside is not None:
            for one in values:
                if one is not None:
                    _collect(one, step.field_name, own or topics, names)
        elif step.kind is Kind.PARTITION:
            names.partitions.extend((topic, number) for topic in own or topics for number in values)
        else:
            found = [one for one in values if one and one != ZERO_UUID]
            if step.is_own_topic:
                own += tuple(found)
            _list_of(names, _resolved(step.kind, struct)).extend(found)


def _resolved(kind: Kind | None, struct: Any) -> Kind | None:
    """Return the kind of a field whose meaning is in a field beside it."""
    if kind is Kind.RESOURCE:
        resource_type: int = getattr(struct, "resource_type", 0) or getattr(struct, "resource_type_filter", 0)
        return RESOURCE_KINDS.get(resource_type)
    return COORDINATOR_KINDS.get(struct.key_type) if kind is Kind.COORDINATOR_KEY else kind


def _list_of(names: Names, kind: Kind | None) -> list[Any]:
    match kind:
        case Kind.TOPIC:
            return names.topics
        case Kind.GROUP:
            return names.groups
        case Kind.MEMBER:
            return names.members
        case Kind.TRANSACTIONAL_ID:
            return names.transactional_ids
    return []
