"""The readers of `fixtures/` return all of each file. If a reader dropped half of it, the other tests would still pass.

Method. Counts of files, pairs and fields, and the references between the files.
"""

import pytest

from tests.fixture_files import (
    RELEASES,
    FieldDefinition,
    api_versions,
    conversations,
    definition,
    definitions,
    golden,
    golden_apis,
    golden_log,
    golden_releases,
)

PRIMITIVE_TYPES = {
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "float64",
    "string",
    "bytes",
    "records",
    "uuid",
}


def all_fields(fields: tuple[FieldDefinition, ...]) -> list[FieldDefinition]:
    return [found for field in fields for found in (field, *all_fields(field.fields))]


@pytest.mark.parametrize("release", RELEASES)
def test_structs_are_resolved_and_primitive_types_have_no_fields(release: str) -> None:
    fields = [field for message in definitions(release).values() for field in all_fields(message.fields)]
    assert len(fields) > 1400
    for field in fields:
        assert bool(field.fields) == (field.type.removeprefix("[]") not in PRIMITIVE_TYPES), field


def test_every_version_that_a_release_serves_has_a_definition() -> None:
    table = api_versions()
    for surface in table.surfaces:
        for key, (low, high) in surface.apis.items():
            for version in range(low, high + 1):
                assert definition(f"{table.names[key]}Request", version).api_key == key
                assert definition(f"{table.names[key]}Response", version).api_key == key


def test_golden_pairs_are_complete() -> None:
    pairs = [pair for api in golden_apis() for pair in golden(api)]
    assert len(golden_apis()) == 18
    assert len(pairs) == 1989
    assert all(pair.brokers and pair.note and pair.request for pair in pairs)
    assert sum(pair.response is None for pair in pairs) == 80
    assert len({pair.note for pair in golden("OffsetCommit")}) == 72


def test_recorded_releases_are_complete() -> None:
    apis = ("ApiVersions", "CreateTopics", "DescribeGroups", "FindCoordinator", "ListGroups", "Metadata")
    pairs = {api: golden_releases(api) for api in apis}
    assert sum(len(found) for found in pairs.values()) == 982
    lines = {(surface.broker, surface.mode) for surface in api_versions().surfaces}
    assert len({broker for pair in pairs["Metadata"] for broker in pair.brokers}) == len(lines)


def test_each_response_of_a_conversation_has_its_request() -> None:
    assert len(conversations()) == 14
    for frames in conversations().values():
        requests = {(f.connection, f.correlation_id) for f in frames if f.is_request}
        responses = {(f.connection, f.correlation_id) for f in frames if not f.is_request}
        assert requests
        assert responses <= requests


@pytest.mark.parametrize("release", ["2.0.1", "2.1.1", "4.4.0"])
def test_golden_logs_have_their_segments_and_dumps(release: str) -> None:
    partition = golden_log(release) / "__consumer_offsets-0"
    assert (partition / "00000000000000000000.log").stat().st_size > 2000
    assert "isvalid: true" in (partition / "dump.txt").read_text()
