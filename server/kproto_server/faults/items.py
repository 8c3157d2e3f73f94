"""Where a response carries an error code, and the items of a request and its response that a fault rule is about.

Theory of operation. A response has its error code in itself, or in the items of an array, or in the items of an array
within them: topics and their partitions, groups, members. `Level` is such an array; `levels_of` finds the levels of an
API in a version by the declarations of its messages, together with the array of the request that has the same items.
Two arrays have the same items if their fields have a role in common: all fields of all APIs have Kafka's names, and a
few names stand for the same thing (`ROLES`).

An error for some items has three parts: the request without these items (`without`), which the broker handles; error
items, which are made from the request (`error_items`); and the response with both (`merged`).
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import ZERO_UUID, fields_of
from kproto_server.handlers._error_responses import filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from kproto.declaration import Field, Struct
    from kproto.message import Request, Response

ERROR_FIELDS = ("error_code", "partition_error_code", "acknowledge_error_code")
TOPIC, TOPIC_ID, PARTITION, GROUP, MEMBER = "name", "topic_id", "partition", "group_id", "member_id"
ROLES = {
    "topic": TOPIC,
    "topic_name": TOPIC,
    "name": TOPIC,
    "user": TOPIC,
    "feature": TOPIC,
    "partition": PARTITION,
    "partition_index": PARTITION,
    "partition_id": PARTITION,
    "index": PARTITION,
    **{
        name: name
        for name in (
            TOPIC_ID, GROUP, MEMBER, "group_instance_id", "transactional_id", "key", "resource_type", "resource_name",
            "producer_id",
        )
    },
}  # fmt: skip
"""Field name -> what the field says of its item."""

UNKNOWN = -1
UNKNOWN_ENDINGS = ("offset", "epoch", "watermark", "timestamp", "timestamp_ms")
UNKNOWN_FIELDS = frozenset({"node_id", "port", "generation_id", "leader_id", "producer_id", "broker_id"})
"""Numbers that are -1 beside an error in Kafka, as are those whose names end in `UNKNOWN_ENDINGS`."""

TOPIC_ERRORS = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)
"""Errors of a topic or a partition: where the response has an error code for each, the error stands there."""
MEMBER_ERRORS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID})
"""The same of a member."""

READS = frozenset(
    {1, 2, 3, 9, 10, 15, 16, 18, 23, 29, 32, 34, 35, 46, 48, 50, 55, 60, 61, 65, 66, 69, 74, 75, 77, 78, 90}
)
"""API keys of requests that change nothing here, or whose session has to know all their items (Fetch): the broker
handles all of the request, and errors take the place of some of its items."""


class Selection(NamedTuple):
    """The items that a rule is about; None: whatever they are."""

    topic: str | None
    partition: int | None
    group: str | None
    member: str | None
    transactional_id: str | None
    name_of_topic: Callable[[bytes], str | None]
    """Returns the name of the topic with an id."""

    def has(self, about: Mapping[str, Any]) -> bool:
        """Return whether an item may be, or may have within it, one of these; ``about``: its values by role."""
        wanted = {
            PARTITION: self.partition,
            GROUP: self.group,
            MEMBER: self.member,
            "transactional_id": self.transactional_id,
        }
        return (
            all(value is None or about.get(role, value) == value for role, value in wanted.items())
            and self._has_topic(about)
            and self._has_key(about)
        )

    def _has_topic(self, about: Mapping[str, Any]) -> bool:
        if self.topic is None or not {TOPIC, TOPIC_ID} & about.keys():
            return True
        topic_id = about.get(TOPIC_ID)
        return self.topic in (about.get(TOPIC), self.name_of_topic(topic_id) if topic_id else None)

    def _has_key(self, about: Mapping[str, Any]) -> bool:
        keys = [key for key in (self.group, self.transactional_id) if key is not None]
        return "key" not in about or not keys or about["key"] in keys


class Level(NamedTuple):
    """An array of a response, or of the items of another level, whose items have error codes or such arrays."""

    array: str
    item: type[Struct]
    source: str | None
    """The array of the request, or of the items of the request, that has the same items; None: it has none."""
    plain_role: str
    """The role of the values of ``source`` if they are no structs."""
    has_error: bool
    inner: Level | None


@cache
def level_of(api_key: int, api_version: int) -> Level | None:
    """Return the outermost level of an API; None: the response has no items with errors."""
    return _level(registry.response_class(api_key), registry.request_class(api_key), api_version)


def levels_of(api_key: int, api_version: int) -> list[Level]:
    """Return the levels of an API, the outermost one first."""
    found, level = [], level_of(api_key, api_version)
    while level is not None:
        found.append(level)
        level = level.inner
    return found


@cache
def has_field(api_key: int, api_version: int, name: str) -> bool:
    """Return whether the response of an API itself has a field in a version."""
    fields = fields_of(registry.response_class(api_key))
    return any(field.name == name and field.versions.covers(api_version) for field in fields)


def _level(response: type[Struct], request: type[Struct] | None, api_version: int) -> Level | None:
    for field in _arrays(response, api_version):
        item = field.type.element.struct if field.type.element else None
        if item is None:
            continue
        roles = _roles(item)
        source = None if request is None else _source(field.name, item, request, api_version)
        source_item = source.type.element.struct if source and source.type.element else None
        inner = _level(item, source_item, api_version)
        has_error = any(f.name in ERROR_FIELDS and f.versions.covers(api_version) for f in fields_of(item))
        if has_error or inner:
            plain_role = next(iter(roles), TOPIC)
            return Level(field.name, item, source and source.name, plain_role, has_error, inner)
    return None


def _arrays(cls: type[Struct], api_version: int) -> Iterator[Field]:
    return (field for field in fields_of(cls) if field.type.kind == "array" and field.versions.covers(api_version))


def _roles(cls: type[Struct]) -> dict[str, str]:
    """Return the roles that fields of a struct have, each with the name of the field."""
    return {ROLES[field.name]: field.name for field in fields_of(cls) if field.name in ROLES}


def _source(array: str, item: type[Struct], request: type[Struct], api_version: int) -> Field | None:
    """Return the array of a request that has the items of an array of its response."""
    candidates = sorted(_arrays(request, api_version), key=lambda field: field.name != array)
    structs = [field for field in candidates if field.type.element and field.type.element.struct]
    roles = _roles(item)
    for field in structs:
        assert field.type.element is not None
        assert field.type.element.struct is not None
        if roles.keys() & _roles(field.type.element.struct).keys():
            return field
    if all(field.name in (*ERROR_FIELDS, "error_message") or field.type.kind == "array" for field in fields_of(item)):
        return structs[0] if structs else None  # ACLs: one result for each, in order
    kinds = {field.type.kind for field in fields_of(item) if field.name in roles.values()}
    plain = [field for field in candidates if field.type.element and field.type.element.kind in kinds]
    return plain[0] if plain else None


def place_of(
    error: ErrorCode, selection: Selection, place: str | None, api_key: int, version: int
) -> Level | str | None:
    """Return the level whose items get an error, or "response"; None: this version has no such place.

    ``place``: where the rule wants it; None: where a broker puts the error, which depends on what the error is about.
    """
    levels, is_in_itself = levels_of(api_key, version), has_field(api_key, version, "error_code")
    itself = "response" if is_in_itself else None
    if place == "response":
        return itself
    outermost = next((level for level in levels if level.has_error), None)
    about = _first_about(_subjects(error, selection), levels)
    if place == "items":
        return about or outermost
    return about or itself or outermost


def _subjects(error: ErrorCode, selection: Selection) -> frozenset[str]:
    """Return the roles of which an item has one if it gets the error; empty: the error is about no item."""
    if selection.partition is not None:
        return frozenset({PARTITION})
    if selection.topic is not None or error in TOPIC_ERRORS:
        return frozenset({TOPIC, TOPIC_ID})
    return frozenset({MEMBER}) if error in MEMBER_ERRORS else frozenset()


def _first_about(subjects: frozenset[str], levels: list[Level]) -> Level | None:
    """Return the outermost level with errors whose items, or the items around them, have one of these roles."""
    roles: set[str] = set()
    for level in levels:
        roles |= _roles(level.item).keys()
        if level.has_error and subjects & roles:
            return level
    return None


def error_response(error: ErrorCode, request: Request, api_key: int, version: int) -> Response:
    """Return a response whose own error code is this error."""
    member_id = getattr(request, "member_id", "")
    about = {MEMBER: member_id} if isinstance(member_id, str) else {}
    response: Response = _failed(registry.response_class(api_key), about, error, version)
    return response


def empty_response(api_key: int, version: int) -> Response:
    """Return a response without items and without an error."""
    return filled(registry.response_class(api_key), {}, version)


class Selects(Protocol):
    """Selects items by what they are about."""

    def has(self, about: Mapping[str, Any]) -> bool:
        """Return whether an item is selected, or may have a selected one within it."""


class ErrorItems(NamedTuple):
    """An error for the selected items of a level."""

    error: ErrorCode
    selection: Selects
    target: Level
    api_key: int
    version: int
    message: str | None = ""
    """Of the items that have an error message; empty: Kafka's for the error."""

    def made_from(self, request: Request) -> tuple[Struct, ...]:
        """Return the items of the response's outermost array that the request's selected items get."""
        level = level_of(self.api_key, self.version)
        return () if level is None else self._made(level, request)

    def _made(self, level: Level, parent: Any) -> tuple[Struct, ...]:
        made: list[Struct] = []
        for item in _items(parent, level.source):
            about = _described(item, level.plain_role)
            if not self.selection.has(about):
                continue
            if level is self.target:
                made.append(_failed(level.item, about, self.error, self.version, self.message))
            elif level.inner is not None and (inside := self._made(level.inner, item)):
                made.append(_filled(level.item, {**about, level.inner.array: inside}, self.version))
        return tuple(made)

    def without(self, request: Request) -> Request | None:
        """Return a request without the selected items; None if nothing is left of it."""
        level = level_of(self.api_key, self.version)
        assert level is not None, "an API whose items get errors"
        rest: Request | None = self._without(level, request)
        return rest

    def _without(self, level: Level, parent: Any) -> Any:
        if level.source is None:
            return None
        kept: list[Any] = []
        for item in _items(parent, level.source):
            if not self.selection.has(_described(item, level.plain_role)):
                kept.append(item)
            elif level is not self.target and level.inner is not None:
                rest = self._without(level.inner, item)
                if rest is not None:
                    kept.append(rest)
        return parent.replace(**{level.source: tuple(kept)}) if kept else None

    def merged(self, response: Response, additions: tuple[Struct, ...]) -> Response:
        """Return a response with error items in the places of the selected ones, and with those that it lacks."""
        level = level_of(self.api_key, self.version)
        assert level is not None, "an API whose items get errors"
        merged: Response = self._merged(level, response, additions)
        return merged

    def _merged(self, level: Level, parent: Any, additions: tuple[Struct, ...]) -> Any:
        result, left = [], _Additions(additions)
        for item in getattr(parent, level.array) or ():
            about = _described(item, "")
            addition = left.take(about)
            if not self.selection.has(about):
                result.append(item)
            elif level is self.target:
                result.append(_failed(level.item, about, self.error, self.version, self.message))
            elif level.inner is not None:
                inside = () if addition is None else getattr(addition, level.inner.array)
                result.append(self._merged(level.inner, item, inside))
        return parent.replace(**{level.array: (*result, *left.items)})


class _Additions:
    """The error items of one level, which are found by what they are about: there may be thousands."""

    def __init__(self, items: Iterable[Struct]) -> None:
        self._left: dict[int, Struct] = dict(enumerate(items))
        self._by_roles: dict[tuple[str, ...], list[tuple[int, dict[str, Any]]]] = {}
        for number, item in self._left.items():
            about = _described(item, "")
            self._by_roles.setdefault(tuple(sorted(about)), []).append((number, about))
        self._numbers: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[tuple[Any, ...], deque[int]]] = {}
        """By the roles of the items, and those that another item has, too: by value, the numbers of the items."""

    @property
    def items(self) -> Iterable[Struct]:
        """The items that were not taken."""
        return self._left.values()

    def take(self, about: Mapping[str, Any]) -> Struct | None:
        """Remove and return the first item about the same: they have values in common, and all of these are equal."""
        found = []
        for roles in self._by_roles:
            common = tuple(role for role in roles if role in about)
            numbers = self._numbers_of(roles, common).get(tuple(about[role] for role in common)) if common else None
            while numbers and numbers[0] not in self._left:
                numbers.popleft()
            if numbers:
                found.append(numbers[0])
        return self._left.pop(min(found)) if found else None

    def _numbers_of(self, roles: tuple[str, ...], common: tuple[str, ...]) -> dict[tuple[Any, ...], deque[int]]:
        numbers = self._numbers.get((roles, common))
        if numbers is None:
            numbers = self._numbers[roles, common] = {}
            for number, about in self._by_roles[roles]:
                numbers.setdefault(tuple(about[role] for role in common), deque()).append(number)
        return numbers


def _items(parent: Any, source: str | None) -> tuple[Any, ...]:
    return () if source is None else getattr(parent, source) or ()


def _described(item: Any, plain_role: str) -> dict[str, Any]:
    """Return the values of an item by role; a topic without name has only its id, and the other way round."""
    if not isinstance(item, tuple):
        return {plain_role: item}
    found: dict[str, Any] = {}
    cls: type[Any] = type(item)
    for field in fields_of(cls):
        role, value = ROLES.get(field.name), getattr(item, field.name)
        if role is not None and value not in ("", None, ZERO_UUID) and not isinstance(value, tuple):
            found.setdefault(role, value)
    return found


def _failed(cls: type[Any], about: Mapping[str, Any], error: ErrorCode, version: int, message: str | None = "") -> Any:
    """Return a struct with an error code, and with what it is about."""
    errors = {**dict.fromkeys(ERROR_FIELDS, int(error)), "error_message": error.message if message == "" else message}
    return _filled(cls, {**about, **errors}, version)


def _filled(cls: type[Any], values: Mapping[str, Any], version: int) -> Any:
    """Return a struct with values by role or field name; unknown numbers are -1, and records are empty."""
    given: dict[str, Any] = {}
    defaults = vars(cls)["_defaults"]
    for field in fields_of(cls):
        role = ROLES.get(field.name, "")
        if field.name in values or role in values:
            given[field.name] = values[field.name] if field.name in values else values[role]
        elif field.name in defaults:
            continue
        elif field.type.kind.startswith("int") and (
            field.name in UNKNOWN_FIELDS or field.name.endswith(UNKNOWN_ENDINGS)
        ):
            given[field.name] = UNKNOWN
        elif field.type.kind == "records":
            given[field.name] = b""
    return filled(cls, given, version)
