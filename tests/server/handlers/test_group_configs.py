"""Configs of groups: the responses of 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 to the same requests, and their effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kproto.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kproto.messages.k33_alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from kproto.messages.k44_incremental_alter_configs import AlterableConfig as Change
from kproto.messages.k44_incremental_alter_configs import AlterConfigsResource as Changes
from kproto.messages.k44_incremental_alter_configs import IncrementalAlterConfigsRequest
from kproto.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest
from kproto_server.configuration.durations import duration_ms
from kproto_server.configuration.group_configs import effective, group_configs
from kproto_server.configuration.settings import Settings
from kproto_server.handlers._config_changes import GROUPS_MAX
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.testing.in_memory import virtual_clock
from tests.coordinator.broker_state import ask, new_state
from tests.fixture_files import configs

if TYPE_CHECKING:
    from kproto_server.state import BrokerState

GROUP = 32
SET, DELETE, APPEND = 0, 1, 2
STATIC, DEFAULT, OF_GROUP = 4, 5, 8
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
RELEASES = ("4.0.2", "4.1.2", "4.2.2", "4.3.1", "4.4.0")
EACH_RELEASE = pytest.mark.parametrize("release", RELEASES)

Returned = tuple[int, "str | None"]


def change(
    state: BrokerState, group_id: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> Returned:
    changed = tuple(Change(name=one, config_operation=operation, value=value) for one, operation, value in changes)
    resource = Changes(resource_type=GROUP, resource_name=group_id, configs=changed)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (response,) = ask(state, request, 1).responses
    return response.error_code, response.error_message


def put(state: BrokerState, group_id: str, given: dict[str, str | None]) -> Returned:
    wanted = tuple(AlterableConfig(name=one, value=value) for one, value in given.items())
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group_id, configs=wanted)
    (response,) = ask(state, AlterConfigsRequest(resources=(resource,), validate_only=False), 2).responses
    return response.error_code, response.error_message


def described(state: BrokerState, group_id: str, *names: str) -> list[Any]:
    """Of each config its name, value, source and synonyms."""
    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=group_id, configuration_keys=names or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (result,) = ask(state, request, 4).results
    assert result.error_code == 0
    return [
        (one.name, one.value, one.config_source, [(s.name, s.value, s.source) for s in one.synonyms])
        for one in result.configs
    ]


def listed(state: BrokerState) -> list[str]:
    response = ask(state, ListConfigResourcesRequest(resource_types=(GROUP,)), 1)
    return [one.resource_name for one in response.config_resources]


def interval_ms(state: BrokerState, group_id: str) -> int:
    """Return the heartbeat interval that a member of a consumer group gets."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id="m", member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_names=("t",),
        topic_partitions=(),
    )  # fmt: skip
    response = ask(state, request, 0)
    assert response.error_code == 0, response
    return int(response.heartbeat_interval_ms)


@EACH_RELEASE
def test_a_kafka_version_has_the_group_configs_of_that_release(release: str) -> None:
    known = group_configs(KafkaVersion.named(release))
    recorded = configs().group[release]
    assert set(known) == set(recorded)
    for name, config in known.items():
        assert (config.type.name, config.default) == (recorded[name].type, recorded[name].default or ""), name
        assert config.low is None or recorded[name].valid == f"[{config.low},...]", name
        assert (config.synonym is None) == (config.synonym not in configs().broker[release]), name


@EACH_RELEASE
def test_a_group_has_its_own_configs_and_inherits_the_others(release: str) -> None:
    state = new_state(release, settings={"group.consumer.heartbeat.interval.ms": "6000"})
    assert change(state, "g", (SESSION, SET, " 46000 ")) == (0, None)
    own = (SESSION, "46000", OF_GROUP)
    of_session = ("group." + SESSION, "45000", DEFAULT)
    of_heartbeat = [("group." + HEARTBEAT, "6000", STATIC), ("group." + HEARTBEAT, "5000", DEFAULT)]
    if release >= "4.3":
        assert described(state, "g", SESSION, HEARTBEAT) == [
            (*own, [own, of_session]),
            (HEARTBEAT, "6000", STATIC, of_heartbeat),
        ]
        assert described(state, "no such group", SESSION) == [(SESSION, "45000", DEFAULT, [of_session])]
    else:
        inherited = (HEARTBEAT, "6000", DEFAULT)
        assert described(state, "g", SESSION, HEARTBEAT) == [(*own, [own]), (*inherited, [inherited])]


@EACH_RELEASE
def test_configs_are_replaced_and_removed(release: str) -> None:
    state = new_state(release)
    assert put(state, "g", {SESSION: "46000", HEARTBEAT: "6000"}) == (0, None)
    assert put(state, "g", {HEARTBEAT: "7000"}) == (0, None)
    assert [value for _, value, *_ in described(state, "g", SESSION, HEARTBEAT)] == ["45000", "7000"]
    assert change(state, "g", (HEARTBEAT, DELETE, None)) == (0, None)
    assert [value for _, value, *_ in described(state, "g", SESSION, HEARTBEAT)] == ["45000", "5000"]
    assert state.settings.groups == {}


@EACH_RELEASE
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("no.such", "1", "Unknown group config name: no.such"),
        (SESSION, "soon", f"Invalid value soon for configuration {SESSION}: Not a number of type INT"),
        (SESSION, "0", f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        (
            "share.auto.offset.reset",
            "never",
            "Invalid value never for configuration share.auto.offset.reset: Invalid value `never` for configuration "
            "share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'.",
        ),
    ],
)
def test_a_value_that_no_group_can_have_is_refused(release: str, name: str, value: str, message: str) -> None:
    returned = message.replace(".nS>", ".nS.>") if release == "4.0.2" else message
    state = new_state(release)
    assert change(state, "g", (name, SET, value)) == (40, returned)
    assert put(state, "g", {name: value}) == (40, returned)


@EACH_RELEASE
def test_a_value_beyond_the_limits_of_the_broker_is_refused(release: str) -> None:
    state = new_state(release)
    if release == "4.4.0":
        low = high = f"{SESSION} must be in the range 45000 to 60000 inclusive."
    else:
        low = f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms"
        high = f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms"
    assert change(state, "g", (SESSION, SET, "44999")) == (40, low)
    assert change(state, "g", (SESSION, SET, "60001")) == (40, high)


def test_a_limit_on_one_side_is_named() -> None:
    state = new_state("4.4.0")
    assert change(state, "g", ("streams.num.standby.replicas", SET, "3")) == (
        40,
        "streams.num.standby.replicas must be less than or equal to 2",
    )
    assert change(state, "g", ("streams.task.offset.interval.ms", SET, "3")) == (
        40,
        "streams.task.offset.interval.ms must be greater than or equal to 15000",
    )


@EACH_RELEASE
def test_heartbeats_must_fit_into_a_session_of_the_broker(release: str) -> None:
    settings = {
        "group.consumer.session.timeout.ms": "3000",
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "500",
    }
    state = new_state(release, settings=settings)
    assert change(state, "g", (HEARTBEAT, SET, "7000")) == (40, f"{SESSION} must be greater than {HEARTBEAT}")
    assert change(state, "g", (HEARTBEAT, SET, "7000"), (SESSION, SET, "9000")) == (0, None)


def test_special_values_of_4_4() -> None:
    state = new_state("4.4.0")
    tags, topic = "streams.rack.aware.assignment.tags", "errors.deadletterqueue.topic.name"
    assert change(state, "g", (tags, SET, "a,a")) == (40, f"{tags} must not contain duplicate tag keys.")
    assert change(state, "g", (topic, SET, "__x")) == (40, f"{topic}: DLQ topic name must not start with '__'")
    assert change(state, "g", ("streams.assignor.name", SET, "x")) == (
        40,
        "streams.assignor.name 'x' is not a registered task assignor. Registered assignors are: [sticky].",
    )
    assert (
        change(state, "g", (tags, SET, "a,b"), (topic, SET, "dlq.g"), ("streams.assignor.name", SET, "sticky"))[0] == 0
    )
    assert [value for _, value, *_ in described(state, "g", tags)] == ["a,b"]


@EACH_RELEASE
def test_requests_that_make_no_sense_are_refused(release: str) -> None:
    state = new_state(release)
    no_name = 42, "Default group resources are not allowed."
    assert put(state, "", {}) == no_name
    assert change(state, "", ("no.such", SET, "1")) == no_name
    nulls = 42, f"Null value not supported for : {SESSION}, no.such"
    assert put(state, "g", {SESSION: None, "no.such": None}) == nulls
    assert change(state, "g", (SESSION, SET, None), ("no.such", SET, None)) == nulls
    not_a_list = "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not LIST."
    assert change(state, "g", ("streams.rack.aware.assignment.tags", APPEND, "a")) == (40, not_a_list)
    assert change(state, "g", (SESSION, SET, "1"), (SESSION, SET, "2")) == (42, "Error due to duplicate config keys")
    assert change(state, "g", ("no.such", DELETE, None)) == (0, None)


def test_what_is_only_checked_changes_nothing() -> None:
    state = new_state()
    assert change(state, "g", (SESSION, SET, "46000"), validate_only=True) == (0, None)
    assert state.settings.groups == {}


def test_groups_before_4_0_have_no_configs() -> None:
    refused = 42, "Unknown resource type 32"
    assert change(new_state("3.9"), "g", (SESSION, SET, "46000")) == refused
    assert put(new_state("3.9"), "g", {SESSION: "46000"}) == refused


def test_groups_with_configs_are_listed_in_hash_order() -> None:
    state = new_state("4.4.0")
    for group_id in ("group-with-long-name", "h", "k3", "zz", "g"):
        change(state, group_id, (SESSION, SET, "46000"))
    assert listed(state) == ["zz", "g", "h", "k3", "group-with-long-name"]


@pytest.mark.parametrize("release", ["4.1.2", "4.2.2"])
def test_a_group_whose_configs_are_removed_is_not_listed(release: str) -> None:
    state = new_state(release)
    change(state, "g", (SESSION, SET, "46000"))
    change(state, "g", (SESSION, DELETE, None))
    assert listed(state) == []


def test_configs_are_described_in_the_order_of_the_release() -> None:
    names = [name for name, *_ in described(new_state("4.0.2"), "g")]
    assert names == [
        SESSION, "share.auto.offset.reset", "share.record.lock.duration.ms", HEARTBEAT, "share.session.timeout.ms",
        "share.heartbeat.interval.ms",
    ]  # fmt: skip


def test_configs_are_those_of_a_consumer_group_at_once() -> None:
    state = new_state("4.4.0", clock=virtual_clock())
    assert change(state, "g", (HEARTBEAT, SET, "6000")) == (0, None)
    assert (interval_ms(state, "g"), interval_ms(state, "other")) == (6000, 5000)


def test_a_number_between_blanks_has_its_effect() -> None:
    state = new_state("4.4.0", clock=virtual_clock())
    assert change(state, "g", (HEARTBEAT, SET, " 6000 ")) == (0, None)
    assert interval_ms(state, "g") == 6000
    assert listed(state) == ["g"]


def test_configs_of_share_groups_have_their_effect() -> None:
    state = new_state("4.4.0")
    given = {
        "share.record.lock.duration.ms": "20000",
        "share.delivery.count.limit": "3",
        "share.partition.max.record.locks": "500",
        "share.auto.offset.reset": "by_duration:PT1H",
        "share.isolation.level": "read_committed",
        "share.session.timeout.ms": "50000",
        "share.heartbeat.interval.ms": "7000",
        "share.assignment.interval.ms": "5",
    }
    assert change(state, "g", *((name, SET, value) for name, value in given.items())) == (0, None)
    found = state.share_groups.settings_of("g")
    assert (found.lock_duration_ms, found.delivery_count_max, found.in_flight_max) == (20000, 3, 500)
    assert (found.auto_offset_reset, found.reads_committed) == ("by_duration:PT1H", True)
    assert (found.session_timeout_ms, found.heartbeat_interval_ms, found.assignment_interval_ms) == (50000, 7000, 5)
    assert state.share_groups.settings_of("other").lock_duration_ms == 30000


def test_values_beyond_limits_that_have_changed_are_capped() -> None:
    given = {SESSION: "60000", "streams.num.standby.replicas": "2"}
    changed = {"group.consumer.max.session.timeout.ms": "50000", "group.streams.max.standby.replicas": "1"}
    for release, expected in (("4.4.0", ["50000", "1"]), ("4.2.2", ["60000", "2"])):
        found = effective(Settings(KafkaVersion.named(release), changed), given)
        assert [found[name] for name in given] == expected


def test_few_groups_have_configs() -> None:
    state = new_state()
    refused = 44, "kproto keeps configs of at most 10000 groups, of 10000 characters each"
    assert change(state, "x" * 10_000, (SESSION, SET, "46000")) == refused
    state.settings.groups.update({f"g{number}": {SESSION: "46000"} for number in range(GROUPS_MAX)})
    assert change(state, "one more", (SESSION, SET, "46000")) == refused
    assert change(state, "g7", (SESSION, SET, "47000")) == (0, None)


def test_a_reset_forgets_the_configs() -> None:
    state = new_state()
    change(state, "g", (SESSION, SET, "46000"))
    state.reset()
    assert listed(state) == []


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT1H", 3_600_000),
        ("p1dt2h3.5s", 93_603_500),
        ("-PT1S", -1000),
        ("PT-1.5S", -1500),
        ("PT0.0019S", 1),
        ("P", None),
        ("PT", None),
        ("P1DT", None),
        ("1H", None),
        ("PT1.5H", None),
        ("P99999999999999999999D", None),
        ("P9999999999999999D", None),
    ],
)
def test_durations_are_those_of_java(text: str, duration: int | None) -> None:
    assert duration_ms(text) == duration
