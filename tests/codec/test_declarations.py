"""Each declaration equals Kafka's definition, field by field, in every version of both releases kept in fixtures.

What is compared is what stands on the wire and what a user sees: name, type, array, null, tag, compact form, default,
ignorable, and the same of every nested structure. `TODAY` wins where both releases know a field and differ.
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
"""Never on a broker's client listener, in no release: brokers and controllers say these to controllers."""

RENAMED_APIS = {"ListClientMetricsResources": "ListConfigResources"}
"""3.9.2's name: today's, of the same API key and layout."""

RENAMED = {
    ("TxnOffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch",
    ("OffsetCommitRequest", "GenerationId"): "GenerationIdOrMemberEpoch",
    ("ListConfigResourcesResponse", "ClientMetricsResources"): "ConfigResources",
    ("ListConfigResourcesResponse", "Name"): "ResourceName",
}
"""3.9.2's field: today's. The layout is the same, and there is one declaration."""


def early_access(api_key: int) -> bool:
    """Whether 3.9.2 had the API for trying out only, in one unstable version; today's definition counts then."""
    return any(
        facts.newest_is_unstable and len(list(facts.valid_versions)) == 1
        for facts in definitions(RETIRED).values()
        if facts.kind == "request" and facts.api_key == api_key
    )


class Case(NamedTuple):
    """A message as one release defines it."""

    cls: type[Message]
    release: str
    facts: Definition

    def __str__(self) -> str:
        return f"{self.cls.__name__} of {self.release}"


def cases() -> Iterator[Case]:
    for release in RELEASES:
        for name, facts in definitions(release).items():
            if facts.kind not in ("request", "response") or facts.api_key not in APIS:
                continue
            if release == RETIRED and early_access(facts.api_key):
                continue
            cls = request_class(facts.api_key) if facts.kind == "request" else response_class(facts.api_key)
            api = name.removesuffix("Request").removesuffix("Response")
            assert cls.__name__.startswith(RENAMED_APIS.get(api, api))
            yield Case(cls, release, facts)


CASES = tuple(cases())
each_case = pytest.mark.parametrize("case", CASES, ids=str)
both_sides = [side(key) for key in APIS for side in (request_class, response_class)]
each_message = pytest.mark.parametrize("cls", both_sides, ids=lambda cls: cls.__name__)


def test_every_message_of_a_client_listener_is_declared() -> None:
    asked = {
        facts.api_key: facts
        for release in RELEASES
        for facts in definitions(release).values()
        if facts.kind == "request" and {"broker", "zkBroker"} & set(facts.listeners)
    }
    assert asked.keys() == APIS.keys()


def test_what_is_not_declared_is_of_controllers_only() -> None:
    left_out = {
        facts.api_key: name.removesuffix("Request")
        for release in RELEASES
        for name, facts in definitions(release).items()
        if facts.kind == "request" and facts.api_key not in APIS
    }
    assert left_out == CONTROLLERS_ONLY


def test_every_version_that_a_release_ever_served_is_declared() -> None:
    """No version falls between the two releases whose layouts are compared below."""
    for surface in api_versions().surfaces:
        for key, (low, high) in surface.apis.items():
            first, last = request_class(key)._versions
            unstable = early_access(key) and surface.line in ("3.9", "4.0", "4.1")
            assert first <= low or unstable, f"{surface.line} {surface.mode} key {key}"
            assert high <= last, f"{surface.line} {surface.mode} key {key}"


@each_message
def test_versions_are_kafkas(cls: type[Message]) -> None:
    known = [case.facts.valid_versions for case in CASES if case.cls is cls and list(case.facts.valid_versions)]
    assert cls._versions == (min(v.low for v in known), max(v.high for v in known))
    assert set(range(cls._versions.first, cls._versions.last + 1)) == {v for versions in known for v in versions}


@each_case
def test_flexible_versions_are_kafkas(case: Case) -> None:
    for version in case.facts.valid_versions:
        assert case.cls._flexible.covers(version) == (version in case.facts.flexible_versions)


@each_case
def test_api_key_is_kafkas(case: Case) -> None:
    assert case.cls._api_key == case.facts.api_key


class Layout(NamedTuple):
    """A field in one version."""

    name: str
    kind: str
    """Kafka's name of a primitive, or "struct"."""
    array: bool
    nullable: bool
    tag: int | None
    compact_apart: bool
    fields: tuple[Any, ...]


def kafkas(message: str, facts: tuple[FieldDefinition, ...], version: int) -> tuple[Layout, ...]:
    return tuple(
        Layout(
            name=snake(RENAMED.get((message, fact.name), fact.name)),
            kind="struct" if fact.fields else fact.type.removeprefix("[]"),
            array=fact.type.startswith("[]"),
            nullable=version in fact.nullable_versions,
            tag=fact.tag if version in fact.tagged_versions else None,
            compact_apart=fact.flexible_versions is not None,
            fields=kafkas(message, fact.fields, version),
        )
        for fact in facts
        if version in fact.versions
    )


def ours(cls: type[Struct], version: int) -> tuple[Layout, ...]:
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
                compact_apart=field.never_compact,
                fields=ours(kind.struct, version) if kind.struct is not None else (),
            )
        )
    return tuple(found)


@each_case
def test_every_version_has_kafkas_layout(case: Case) -> None:
    for version in case.facts.valid_versions:
        assert ours(case.cls, version) == kafkas(case.cls.__name__, case.facts.fields, version), f"version {version}"


class Place(NamedTuple):
    """A declared field, its class, and the versions of the message in which there is such a class."""

    owner: type[Struct]
    field: Field
    outer: tuple[int, ...]

    @property
    def always_there(self) -> bool:
        return all(self.field.versions.covers(version) for version in self.outer)


def places(cls: type[Struct], outer: tuple[int, ...], path: str) -> Iterator[tuple[str, Place]]:
    for field in fields_of(cls):
        here = f"{path}.{field.name}"
        yield here, Place(cls, field, outer)
        kind = field.type.element or field.type
        if kind.struct is not None:
            inner = tuple(version for version in outer if field.versions.covers(version))
            yield from places(kind.struct, inner, here)


def all_places(cls: type[Message]) -> dict[str, Place]:
    return dict(places(cls, tuple(range(cls._versions.first, cls._versions.last + 1)), cls.__name__))


def facts_by_path(message: str, facts: tuple[FieldDefinition, ...], path: str) -> Iterator[tuple[str, FieldDefinition]]:
    for fact in facts:
        here = f"{path}.{snake(RENAMED.get((message, fact.name), fact.name))}"
        yield here, fact
        yield from facts_by_path(message, fact.fields, here)


def newest_facts(cls: type[Message]) -> Mapping[str, FieldDefinition]:
    """What the newest release that knows a field says of it, by path."""
    found: dict[str, FieldDefinition] = {}
    for case in CASES:
        if case.cls is cls:
            for path, fact in facts_by_path(cls.__name__, case.facts.fields, cls.__name__):
                found.setdefault(path, fact)
    return found


@each_message
def test_defaults_are_kafkas(cls: type[Message]) -> None:
    """Where Kafka gives none it means zero, false or empty; a required field then needs none of ours."""
    facts = newest_facts(cls)
    for path, (owner, field, _) in all_places(cls).items():
        fact = facts[path]
        if fact.has_default:
            assert field.name in owner._defaults, path  # type: ignore[attr-defined]
        if field.name in owner._defaults:  # type: ignore[attr-defined]
            assert field.default == meant_default(field, fact), path
            assert type(field.default) is type(meant_default(field, fact)), path


def meant_default(field: Field, fact: FieldDefinition) -> Any:
    if fact.has_default:
        return fact.default
    return field.type.struct() if field.type.struct is not None else DEFAULTS[field.type.kind]


@each_message
def test_a_field_that_some_version_lacks_has_a_default(cls: type[Message]) -> None:
    for path, place in all_places(cls).items():
        if not place.always_there or place.field.tag is not None:
            assert place.field.name in place.owner._defaults, path  # type: ignore[attr-defined]


@each_message
def test_what_may_be_dropped_is_kafkas(cls: type[Message]) -> None:
    """Of a field that all versions have it makes no difference, and declarations do not say it."""
    facts = newest_facts(cls)
    for path, place in all_places(cls).items():
        if not place.always_there:
            assert place.field.ignorable == facts[path].ignorable, path


@each_message
def test_every_declared_field_is_in_some_version(cls: type[Message]) -> None:
    met: dict[tuple[type[Struct], str], bool] = {}
    for owner, field, outer in all_places(cls).values():
        here = any(field.versions.covers(version) for version in outer)
        met[owner, field.name] = met.get((owner, field.name), False) or here
    assert [name for name, seen in met.items() if not seen] == []
