"""Each declaration equals Kafka's definition, field by field, in every version of both releases in the fixtures.

Compared are all properties that affect the wire or the user: name, type, array, null, tag, compact, default, ignorable,
and the same of every nested struct. If both releases have a field and differ, the definition of `TODAY` is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from kproto.declaration import DEFAULTS, Field, Struct, fields_of
from kproto.message import Message
from kproto.messages import APIS
from kproto.registry import request_class, response_class
from tests.codec.kafka_names import snake
from tests.fixture_files import RELEASES, Definition, FieldDefinition, api_versions, definitions

TODAY, RETIRED = RELEASES

CONTROLLERS_ONLY = {
    52: "Vote",
    53: "BeginQuorumEpoch",
    54: "EndQuorumEpoch",
    59: "FetchSnapshot",
    62: "BrokerRegistration",
    63: "BrokerHeartbeat",
    70: "ControllerRegistration",
    73: "AssignReplicasToDirs",
    82: "UpdateRaftVoter",
}
"""APIs between brokers and controllers, which no release serves on a broker's client listener."""

RENAMED_APIS = {"ListClientMetricsResources": "ListConfigResources"}
"""Name in 3.9.2 -> today's name of the same API key and layout."""

RENAMED = {
    ("TxnOffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch",
    ("OffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch",
    ("ListConfigResourcesResponse", "ClientMetricsResources"): "ConfigResources",
    ("ListConfigResourcesResponse", "Name"): "ResourceName",
}
"""Field in 3.9.2 -> today's name. The layout is the same, and there is one declaration."""


def early_access(api_key: int) -> bool:
    """Whether 3.9.2 has the API in one unstable version only; then today's definition is right."""
    return any(
        definition.newest_is_unstable and len(list(definition.valid_versions)) == 1
        for definition in definitions(RETIRED).values()
        if definition.kind == "request" and definition.api_key == api_key
    )


class Case(NamedTuple):
    """A message in the definition of one release."""

    cls: type[Message]
    release: str
    definition: Definition

    def __str__(self) -> str:
        return f"{self.cls.__name__} of {self.release}"


def cases() -> Iterator[Case]:
    for release in RELEASES:
        for name, definition in definitions(release).items():
            if definition.kind not in ("request", "response") or definition.api_key not in APIS:
                continue
            if release == RETIRED and early_access(definition.api_key):
                continue
            cls = (
                request_class(definition.api_key)
                if definition.kind == "request"
                else response_class(definition.api_key)
            )
            api = name.removesuffix("Request").removesuffix("Response")
            assert cls.__name__.startswith(RENAMED_APIS.get(api, api))
            yield Case(cls, release, definition)


CASES = tuple(cases())
each_case = pytest.mark.parametrize("case", CASES, ids=str)
both_sides = [side(key) for key in APIS for side in (request_class, response_class)]
each_message = pytest.mark.parametrize("cls", both_sides, ids=lambda cls: cls.__name__)


def test_every_message_of_a_client_listener_is_declared() -> None:
    served = {
        definition.api_key: definition
        for release in RELEASES
        for definition in definitions(release).values()
        if definition.kind == "request" and {"broker", "zkBroker"} & set(definition.listeners)
    }
    assert served.keys() == APIS.keys()


def test_undeclared_messages_are_between_brokers_and_controllers() -> None:
    left_out = {
        definition.api_key: name.removesuffix("Request")
        for release in RELEASES
        for name, definition in definitions(release).items()
        if definition.kind == "request" and definition.api_key not in APIS
    }
    assert left_out == CONTROLLERS_ONLY


def test_every_version_that_a_release_ever_served_is_declared() -> None:
    """No version is missing between the two releases whose layouts are compared below."""
    for surface in api_versions().surfaces:
        for key, (low, high) in surface.apis.items():
            first, last = request_class(key)._versions
            unstable = early_access(key) and surface.line in ("3.9", "4.0", "4.1")
            assert first <= low or unstable, f"{surface.line} {surface.mode} key {key}"
            assert high <= last, f"{surface.line} {surface.mode} key {key}"


@each_message
def test_versions_are_kafkas(cls: type[Message]) -> None:
    known = [
        case.definition.valid_versions for case in CASES if case.cls is cls and list(case.definition.valid_versions)
    ]
    assert cls._versions == (min(v.low for v in known), max(v.high for v in known))
    assert set(range(cls._versions.first, cls._versions.last + 1)) == {v for versions in known for v in versions}


@each_case
def test_flexible_versions_are_kafkas_layout(case: Case) -> None:
    for version in case.definition.valid_versions:
        assert case.cls._flexible.covers(version) == (version in case.definition.flexible_versions)


@each_case
def test_api_key_is_kafkas_layout(case: Case) -> None:
    assert case.cls._api_key == case.definition.api_key


class Layout(NamedTuple):
    """A field in one version."""

    name: str
    kind: str
    """Kafka's name of a primitive, or "struct"."""
    array: bool
    nullable: bool
    tag: int | None
    never_compact: bool
    fields: tuple[Any, ...]


def kafkas_layout(message: str, definition: tuple[FieldDefinition, ...], version: int) -> tuple[Layout, ...]:
    return tuple(
        Layout(
            name=snake(RENAMED.get((message, field_definition.name), field_definition.name)),
            kind="struct" if field_definition.fields else field_definition.type.removeprefix("[]"),
            array=field_definition.type.startswith("[]"),
            nullable=version in field_definition.nullable_versions,
            tag=field_definition.tag if version in field_definition.tagged_versions else None,
            never_compact=field_definition.flexible_versions is not None,
            fields=kafkas_layout(message, field_definition.fields, version),
        )
        for field_definition in definition
        if version in field_definition.versions
    )


def declared_layout(cls: type[Struct], version: int) -> tuple[Layout, ...]:
    found = []
    for field in fields_of(cls):
        if not field.versions.covers(version):
            continue
        kind = field.type.element if field.type.element is not None else field.type
        found.append(
            Layout(
                name=field.name,
                kind=kind.kind,
                array=field.type.kind == "array",
                nullable=field.nullable_versions.covers(version),
                tag=field.tag.number if field.tag is not None and field.tag.versions.covers(version) else None,
                never_compact=field.never_compact,
                fields=declared_layout(kind.struct, version) if kind.struct is not None else (),
            )
        )
    return tuple(found)


@each_case
def test_every_version_has_kafkas_layout(case: Case) -> None:
    for version in case.definition.valid_versions:
        assert declared_layout(case.cls, version) == kafkas_layout(
            case.cls.__name__, case.definition.fields, version
        ), f"version {version}"


class DeclaredField(NamedTuple):
    """A declared field, its class, and the versions of the message that contain the class."""

    owner: type[Struct]
    field: Field
    outer: tuple[int, ...]

    @property
    def in_all_versions(self) -> bool:
        return all(self.field.versions.covers(version) for version in self.outer)


def nested_fields(cls: type[Struct], outer: tuple[int, ...], path: str) -> Iterator[tuple[str, DeclaredField]]:
    for field in fields_of(cls):
        here = f"{path}.{field.name}"
        yield here, DeclaredField(cls, field, outer)
        kind = field.type.element or field.type
        if kind.struct is not None:
            inner = tuple(version for version in outer if field.versions.covers(version))
            yield from nested_fields(kind.struct, inner, here)


def all_fields(cls: type[Message]) -> dict[str, DeclaredField]:
    return dict(nested_fields(cls, tuple(range(cls._versions.first, cls._versions.last + 1)), cls.__name__))


def definitions_by_path(
    message: str, definition: tuple[FieldDefinition, ...], path: str
) -> Iterator[tuple[str, FieldDefinition]]:
    for field_definition in definition:
        here = f"{path}.{snake(RENAMED.get((message, field_definition.name), field_definition.name))}"
        yield here, field_definition
        yield from definitions_by_path(message, field_definition.fields, here)


def newest_definitions(cls: type[Message]) -> Mapping[str, FieldDefinition]:
    """Path -> definition of the field in the newest release that has it."""
    found: dict[str, FieldDefinition] = {}
    for case in CASES:
        if case.cls is cls:
            for path, field_definition in definitions_by_path(cls.__name__, case.definition.fields, cls.__name__):
                found.setdefault(path, field_definition)
    return found


@each_message
def test_defaults_are_kafkas(cls: type[Message]) -> None:
    """Without a default, Kafka means zero, false or empty; a required field needs no default in the declaration."""
    definition = newest_definitions(cls)
    for path, (owner, field, _) in all_fields(cls).items():
        field_definition = definition[path]
        if field_definition.has_default:
            assert field.name in owner._defaults, path  # type: ignore[attr-defined]
        if field.name in owner._defaults:  # type: ignore[attr-defined]
            assert field.default == kafkas_default(field, field_definition), path
            assert type(field.default) is type(kafkas_default(field, field_definition)), path


def kafkas_default(field: Field, field_definition: FieldDefinition) -> Any:
    if field_definition.has_default:
        return field_definition.default
    return field.type.struct() if field.type.struct is not None else DEFAULTS[field.type.kind]


@each_message
def test_a_field_that_some_version_lacks_has_a_default(cls: type[Message]) -> None:
    for path, declared in all_fields(cls).items():
        if not declared.in_all_versions or declared.field.tag is not None:
            assert declared.field.name in declared.owner._defaults, path  # type: ignore[attr-defined]


@each_message
def test_ignorable_fields_are_kafkas(cls: type[Message]) -> None:
    """For a field of all versions it makes no difference, and declarations omit it."""
    definition = newest_definitions(cls)
    for path, declared in all_fields(cls).items():
        if not declared.in_all_versions:
            assert declared.field.ignorable == definition[path].ignorable, path


@each_message
def test_every_declared_field_is_in_some_version(cls: type[Message]) -> None:
    in_some_version: dict[tuple[type[Struct], str], bool] = {}
    for owner, field, outer in all_fields(cls).values():
        here = any(field.versions.covers(version) for version in outer)
        in_some_version[owner, field.name] = in_some_version.get((owner, field.name), False) or here
    assert [name for name, is_in_some in in_some_version.items() if not is_in_some] == []
