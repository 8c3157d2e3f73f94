"""Kafka versions against what real brokers advertise (`fixtures/kafka-api-versions.json`, `fixtures/golden`).

A switch is tested at the releases at which it was measured.
"""

import pytest

from kproto.codes import ErrorCode
from kproto_server.cluster.version_behavior import TopicBehavior
from kproto_server.coordinator.version_behavior import CoordinatorBehavior
from kproto_server.handlers._offsets import OffsetsBehavior
from kproto_server.handlers._operations import AuthorizedOperationsBehavior
from kproto_server.handlers.k02_list_offsets import ListOffsetsBehavior
from kproto_server.handlers.k10_find_coordinator import FindCoordinatorBehavior
from kproto_server.handlers.k15_describe_groups import DescribeGroupsBehavior
from kproto_server.handlers.k16_list_groups import ListGroupsBehavior
from kproto_server.handlers.k18_api_versions import ApiVersionsBehavior
from kproto_server.partition_log.fetch_behavior import FetchBehavior
from kproto_server.releases.kafka_version import (
    KafkaVersion,
    Mode,
    UnknownKafkaVersion,
    kafka_version_names,
    releases_serving,
    removed_in,
)
from kproto_server.releases.release import VersionBehavior
from tests.fixture_files import WireSurface, api_versions, golden

PRODUCE, METADATA, OFFSET_COMMIT, OFFSET_FETCH, CONTROLLED_SHUTDOWN, JOIN_GROUP = 0, 3, 8, 9, 7, 11
API_VERSIONS = 18
COORDINATOR_TEXT = "The coordinator is not available."


@pytest.mark.parametrize("surface", api_versions().surfaces, ids=lambda s: f"{s.line}-{s.mode}")
def test_a_kafka_version_advertises_what_a_broker_of_that_release_and_mode_does(surface: WireSurface) -> None:
    """OC-1, OF-1, GP-1, BA-26: the recorded ranges hold the tables of these rules."""
    kafka_version = KafkaVersion.named(f"{surface.line}-{surface.mode}")
    assert dict(kafka_version.api_versions) == dict(surface.apis)
    assert (kafka_version.mode, kafka_version.has_api_versions) == (surface.mode, surface.has_api_versions)
    assert list(kafka_version.api_versions) == sorted(kafka_version.api_versions)


@pytest.mark.parametrize("surface", api_versions().surfaces, ids=lambda s: f"{s.line}-{s.mode}")
def test_a_patch_release_has_the_kafka_version_of_its_line(surface: WireSurface) -> None:
    assert KafkaVersion.named(f"{surface.broker}-{surface.mode}") == KafkaVersion.named(
        f"{surface.line}-{surface.mode}"
    )


def test_ba_21_recorded_responses_to_a_too_new_version_agree() -> None:
    pairs = [pair for pair in golden("ApiVersions") if pair.response_values]
    refused = [pair for pair in pairs if pair.response_values and pair.response_values["ErrorCode"] == 35]
    assert len(refused) > 5
    for pair in refused:
        assert pair.response_values is not None
        for broker in pair.brokers:
            kafka_version = KafkaVersion.named(broker)
            low, high = kafka_version.api_versions[API_VERSIONS]
            itself = [{"ApiKey": API_VERSIONS, "MinVersion": low, "MaxVersion": high}]
            expected = itself if kafka_version.behavior(ApiVersionsBehavior).downgrade_lists_itself else []
            assert pair.response_values["ApiKeys"] == expected, broker


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("2.0.1", "2.0"),
        ("0.8.2.2", "0.8.2"),
        ("0.9", "0.9.0"),
        ("0.10", "0.10.2"),
        ("4.0.0", "4.0.0"),
        ("4.0.1", "4.0"),
        ("3.9", "3.9"),
        ("3.9-kraft", "3.9"),
        ("3.9.2-zookeeper", "3.9-zookeeper"),
        ("2.0-zookeeper", "2.0"),
        ("latest", "latest"),
    ],
)
def test_a_name_means_a_line(asked: str, name: str) -> None:
    assert KafkaVersion.named(asked).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "5",
        "2",
        "4",
        "2.9",
        "2.0.x",
        "2.0.1.1",
        "0.10.",
        "2.0-kraft",
        "4.4-zookeeper",
        "-zookeeper",
        "2.0-",
        "Latest",
    ],
)
def test_an_unknown_name_is_refused_in_one_line_that_names_the_others(name: str) -> None:
    with pytest.raises(UnknownKafkaVersion) as refused:
        KafkaVersion.named(name)
    assert isinstance(refused.value, ValueError)
    assert "\n" not in str(refused.value)
    assert all(valid in str(refused.value) for valid in ("latest", "0.8.2", "4.4", repr(name)))


def test_every_name_that_is_offered_is_accepted() -> None:
    assert [KafkaVersion.named(name).name for name in kafka_version_names()] == kafka_version_names()


def test_from_3_3_on_a_release_is_kraft_unless_asked_otherwise() -> None:
    modes: dict[str, Mode] = {name: KafkaVersion.named(name).mode for name in kafka_version_names()}
    first = kafka_version_names().index("3.3")
    assert set(list(modes.values())[:first]) == {"zookeeper"}
    assert set(list(modes.values())[first:]) == {"kraft"}
    assert KafkaVersion.named("3.3-zookeeper").mode == "zookeeper"


def test_the_default_serves_every_version_of_every_release() -> None:
    """BA-27: no client's range is disjoint from it."""
    latest = KafkaVersion.named()
    assert latest.name == "latest"
    for surface in api_versions().surfaces:
        for api_key, (low, high) in surface.apis.items():
            assert all(latest.serves(api_key, version) for version in range(low, high + 1))
    assert latest.api_versions[OFFSET_COMMIT] == (0, 10)
    assert latest.behavior(OffsetsBehavior).v0_store == "zookeeper"
    assert latest.behavior(CoordinatorBehavior).is_new_coordinator


def test_at_least_compares_releases_by_number() -> None:
    assert KafkaVersion.named("0.10.2").at_least(0, 9)
    assert not KafkaVersion.named("0.9").at_least(0, 10)
    assert KafkaVersion.named("4.0.0").at_least(4, 0)
    assert not KafkaVersion.named("3.9").at_least(4, 0)


def test_internal_apis_are_distinguished() -> None:
    kafka_version = KafkaVersion.named("2.0")
    assert {key for key in kafka_version.api_versions if kafka_version.is_internal(key)} == {4, 5, 6, 7, 27}
    assert api_versions().internal == {key for key in range(200) if kafka_version.is_internal(key)}


def test_produce_of_4x_advertises_more_than_it_serves() -> None:
    """BA-25."""
    kafka_version = KafkaVersion.named("4.4")
    assert kafka_version.api_versions[PRODUCE] == (0, 13)
    assert [version for version in range(15) if kafka_version.serves(PRODUCE, version)] == list(range(3, 14))
    assert KafkaVersion.named("latest").serves(PRODUCE, 0)


def test_releases_serving_a_version_are_those_of_either_mode() -> None:
    assert releases_serving(OFFSET_COMMIT, 10) == ["4.2", "4.3", "4.4"]
    assert releases_serving(OFFSET_COMMIT, 0)[0] == "0.8.1"
    assert releases_serving(OFFSET_COMMIT, 0)[-1] == "3.9"
    assert releases_serving(CONTROLLED_SHUTDOWN, 3)[-1] == "3.9"
    assert releases_serving(OFFSET_COMMIT, 11) == []


def test_a_version_is_removed_when_an_older_release_served_it() -> None:
    four = KafkaVersion.named("4.0")
    assert removed_in(OFFSET_COMMIT, 1, four)
    assert not removed_in(OFFSET_COMMIT, 3, four)
    assert removed_in(PRODUCE, 2, four)
    assert removed_in(CONTROLLED_SHUTDOWN, 0, four)


def test_a_version_that_came_later_was_not_removed() -> None:
    assert not removed_in(OFFSET_COMMIT, 8, KafkaVersion.named("2.0"))


def test_join_group_of_4_0_0_alone_lacks_its_oldest_versions() -> None:
    assert removed_in(JOIN_GROUP, 1, KafkaVersion.named("4.0.0"))
    assert not removed_in(JOIN_GROUP, 1, KafkaVersion.named("4.0"))


@pytest.mark.parametrize(("name", "checked"), [("0.8.2", False), ("0.9", True), ("4.4", True)])
def test_0_8_checks_no_version(name: str, checked: bool) -> None:
    assert KafkaVersion.named(name).closes_on_newer_versions is checked


@pytest.mark.parametrize(
    ("name", "merged"), [("0.10.2", True), ("2.0", True), ("3.9", True), ("4.0", False), ("latest", False)]
)
def test_oc_14_duplicate_partitions_are_merged_up_to_3_9(name: str, merged: bool) -> None:
    assert KafkaVersion.named(name).behavior(OffsetsBehavior).merges_duplicate_partitions is merged


@pytest.mark.parametrize(
    ("name", "version", "error"), [("3.9", 9, 22), ("4.4", 8, 22), ("4.4", 9, 69), ("latest", 10, 69)]
)
def test_oc_21_error_of_a_generation_in_an_unknown_group(name: str, version: int, error: int) -> None:
    assert KafkaVersion.named(name).behavior(CoordinatorBehavior).unknown_group_error(version) == error


@pytest.mark.parametrize(
    ("name", "store"), [("2.8", "zookeeper"), ("3.9-zookeeper", "zookeeper"), ("3.9", "unsupported"), ("4.0", "absent")]
)
def test_oc_20_where_v0_offsets_go(name: str, store: str) -> None:
    assert KafkaVersion.named(name).behavior(OffsetsBehavior).v0_store == store


@pytest.mark.parametrize(("name", "carry"), [("0.9", True), ("2.0", True), ("2.1", False), ("4.4", False)])
def test_ex_40_offsets_carry_their_deadline_before_kip_211(name: str, carry: bool) -> None:
    assert KafkaVersion.named(name).behavior(CoordinatorBehavior).offsets_have_expire_timestamp is carry


@pytest.mark.parametrize(("name", "enforced"), [("0.10.2", False), ("0.11", True), ("4.4", True)])
def test_ba_50_the_offsets_topic_gets_its_replicas_or_is_not_made(name: str, enforced: bool) -> None:
    assert KafkaVersion.named(name).behavior(TopicBehavior).enforces_offsets_replication_factor is enforced


MEASURED: list[tuple[type[VersionBehavior], str, int | None, dict[str, object]]] = [
    (FindCoordinatorBehavior, "success_message", 1, {"2.2": None, "2.3": "NONE", "2.8": "NONE", "4.4": "NONE"}),
    (FindCoordinatorBehavior, "success_message", 4, {"3.0": "", "3.9-zookeeper": "", "4.4": ""}),
    (
        FindCoordinatorBehavior,
        "error_message",
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        {"2.2": None, "2.3": COORDINATOR_TEXT},
    ),
    (
        FindCoordinatorBehavior,
        "responds_to_unknown_type",
        None,
        {"0.11": False, "2.2": False, "2.3": True, "4.4": True},
    ),
    (FindCoordinatorBehavior, "unknown_type_error", None, {"2.3": -1, "2.7": -1, "2.8": 42, "4.4": 42}),
    (
        TopicBehavior,
        "auto_creation_returns_leader_not_available",
        None,
        {"0.8.2": True, "3.9-zookeeper": True, "4.4": False},
    ),
    (
        TopicBehavior,
        "metadata_checks_topic_name_first",
        None,
        {"2.1": False, "2.7": False, "2.8": True, "3.9-zookeeper": True, "4.4": True},
    ),
    (
        TopicBehavior,
        "metadata_always_creates_internal_topics",
        None,
        {"0.11": True, "2.7": True, "2.8": False, "4.4": False},
    ),
    (TopicBehavior, "creates_topics_with_defaults", None, {"2.3": False, "2.4": True, "4.4": True}),
    (TopicBehavior, "invalid_config_error", None, {"0.10.2": -1, "2.0": -1, "2.1": 40, "4.4": 40}),
    (CoordinatorBehavior, "stores_any_commit", None, {"0.8.2": True, "0.9": False, "4.4": False}),
    (OffsetsBehavior, "checks_partitions_of_commit", None, {"0.9": False, "1.1": False, "2.0": True, "4.4": True}),
    (OffsetsBehavior, "fetch_of_unknown_topic_error", None, {"0.8.2": 3, "0.9": 0, "4.4": 0}),
    (CoordinatorBehavior, "no_offsets_topic_error", None, {"0.8.2": 15, "0.11": 16, "4.4": 16}),
    (CoordinatorBehavior, "offsets_create_group", None, {"0.9": False, "0.10.0": False, "0.10.1": True, "4.4": True}),
    (
        OffsetsBehavior,
        "empty_fetch_returns_all",
        None,
        {"0.8.2": False, "0.9": True, "0.10.1": True, "0.10.2": False, "4.4": False},
    ),
    (DescribeGroupsBehavior, "merges_duplicates", None, {"0.10.2": True, "2.2": True, "2.3": False, "4.4": False}),
    (AuthorizedOperationsBehavior, "unrequested", None, {"2.3": 0, "2.4": 0, "2.5": -(2**31), "4.4": -(2**31)}),
    (AuthorizedOperationsBehavior, "on_group", None, {"2.3": 328, "3.9": 328, "4.0": 3400, "4.4": 3400}),
    (
        ListOffsetsBehavior,
        "rejects_unknown_special_timestamps",
        None,
        {"2.8": False, "3.8": False, "3.9": True, "4.4": True},
    ),
    (ListGroupsBehavior, "filters_ignore_case", None, {"2.6": False, "3.7": False, "3.8": True, "4.4": True}),
    (FetchBehavior, "unknown_topic_error", 9, {"2.0": 3, "2.1": 76, "2.2": 3, "4.4": 3}),
    (FetchBehavior, "unknown_topic_error", 10, {"2.1": 3}),
]


@pytest.mark.parametrize(
    ("area", "switch", "argument", "name", "value"),
    [(*row, name, value) for *row, values in MEASURED for name, value in values.items()],
)
def test_a_switch_is_as_measured(
    area: type[VersionBehavior], switch: str, argument: int | None, name: str, value: object
) -> None:
    """A broker of each release named here was asked over the wire; the docstrings of the switches have the rules."""
    found = getattr(KafkaVersion.named(name).behavior(area), switch)
    assert (found if argument is None else found(argument)) == value
