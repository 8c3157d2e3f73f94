"""Topic configs against the definitions of Kafka's releases (`fixtures/kafka-configs.json`).

The texts of refusals are those that CreateTopics of 2.1.1, 2.8.2, 3.9.2 and 4.4.0 gave to the same values.
"""

import re

import pytest

from kproto_server.configuration.settings import SETTINGS, Settings
from kproto_server.configuration.topic_configs import (
    ConfigSource,
    TopicConfigEntry,
    config_problem,
    describe_topic,
    topic_configs,
)
from kproto_server.releases.kafka_version import KafkaVersion
from tests.fixture_files import configs

NEVER_SHOWN = {"internal.segment.bytes"}
TIERED_STORAGE = {"local.retention.bytes", "local.retention.ms", "remote.storage.enable"}


def shown_in(release: str) -> set[str]:
    """The topic configs that DescribeConfigs of that release names: those of tiered storage are hidden before 3.6."""
    hidden = NEVER_SHOWN if KafkaVersion.named(release).at_least(3, 6) else NEVER_SHOWN | TIERED_STORAGE
    return set(configs().topic[release]) - hidden


@pytest.mark.parametrize("release", configs().releases)
def test_a_kafka_version_knows_the_configs_that_topics_of_that_release_have(release: str) -> None:
    known = topic_configs(KafkaVersion.named(release))
    assert set(known) == shown_in(release)
    for name, config in known.items():
        recorded = configs().topic[release][name]
        assert config.default == recorded.default, name
        assert config.synonym == configs().synonyms.get(name), name
        assert config.type.name == recorded.type or (name, recorded.type) == ("cleanup.policy", "STRING")


@pytest.mark.parametrize("release", configs().releases)
def test_a_kafka_version_has_the_bounds_and_choices_of_that_release(release: str) -> None:
    for name, config in topic_configs(KafkaVersion.named(release)).items():
        valid = configs().topic[release][name].valid or ""
        low = re.match(r"\[(-?\d+),\.\.\.", valid)
        if name != "compression.gzip.level":
            assert config.low == (int(low[1]) if low else None), name
        if config.choices and valid:
            assert valid == f"[{', '.join(config.choices)}]", name


OUR_DEFAULTS = {"group.initial.rebalance.delay.ms": "0"}
"""Where Kafka's own default makes tests wait (server/DEVIATIONS.md)."""


@pytest.mark.parametrize("release", configs().releases)
def test_a_broker_settings_default_and_type_are_those_of_that_release(release: str) -> None:
    for name, recorded in configs().broker[release].items():
        setting = SETTINGS[name]
        assert setting.default_in(KafkaVersion.named(release)) == OUR_DEFAULTS.get(name, recorded.default), name
        assert setting.type.name == recorded.type, name


REFUSED = [
    ("retention.ms", "abc", "Invalid value abc for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
    ("retention.ms", "1.5", "Invalid value 1.5 for configuration retention.ms: Not a number of type LONG"),
    (
        "retention.ms",
        "9223372036854775808",
        "Invalid value 9223372036854775808 for configuration retention.ms: Not a number of type LONG",
    ),
    ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
    (
        "segment.bytes",
        "2147483648",
        "Invalid value 2147483648 for configuration segment.bytes: Not a number of type INT",
    ),
    ("segment.bytes", "14", "Invalid value 14 for configuration segment.bytes: Value must be at least 1048576"),
    (
        "preallocate",
        "yes",
        "Invalid value yes for configuration preallocate: Expected value to be either true or false",
    ),
    (
        "min.cleanable.dirty.ratio",
        "x",
        "Invalid value x for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE",
    ),
    (
        "min.cleanable.dirty.ratio",
        "2",
        "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
    ),
    (
        "cleanup.policy",
        "none",
        "Invalid value none for configuration cleanup.policy: String must be one of: compact, delete",
    ),
    (
        "compression.type",
        "LZ4",
        "Invalid value LZ4 for configuration compression.type: String must be one of: "
        "uncompressed, zstd, lz4, snappy, gzip, producer",
    ),
    (
        "compression.gzip.level",
        "0",
        "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
    ),
    (
        "leader.replication.throttled.replicas",
        "x",
        "Invalid value [x] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    ),
    (
        "remote.storage.enable",
        "true",
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
    ),
    ("message.format.version", "2.0", "Unknown topic config name: message.format.version"),
]


@pytest.mark.parametrize(("name", "value", "problem"), REFUSED)
def test_ba_90_a_value_that_cannot_be_is_refused_in_a_brokers_words(name: str, value: str, problem: str) -> None:
    assert config_problem(KafkaVersion.named("4.4"), {name: value}) == problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " 5 "),
        ("retention.ms", "+5"),
        ("preallocate", "TRUE"),
        ("min.cleanable.dirty.ratio", "1e-1"),
        ("cleanup.policy", ""),
        ("cleanup.policy", " compact , delete "),
        ("compression.gzip.level", "-1"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:2"),
        ("leader.replication.throttled.replicas", " "),
    ],
)
def test_a_value_that_real_brokers_take_is_taken(name: str, value: str) -> None:
    assert config_problem(KafkaVersion.named("4.4"), {name: value}) is None


@pytest.mark.parametrize(
    ("release", "taken", "refused"),
    [
        ("2.0", "abc 0.10 3.9-IV0", ""),
        ("2.1", "0.8.0 0.10.2.1 2.1 2.1-IV2 2.1.7", "abc 0.10 2.1-IV3 2.1- 2.2 2.2-IV0"),
        ("2.8", "0.10.0-IV1 2.5.1-IV0 2.7-IV2 2.8-IV1", "0.9.0-IV0 0.10.0-IV2 2.8-IV2 3.0"),
        ("3.6", "3.6 3.6-IV2", "3.6-IV3 3.7-IV0 3.10"),
        ("3.7", "3.7-IV4 3.8-IV0", "3.8 3.9-IV0"),
        ("3.8", "3.8 3.9-IV0", "3.9 4.0-IV0"),
        ("3.9", "3.9.2 4.0-IV0 4.0-IV1", "4.0 4.0-IV2 4.1-IV0"),
    ],
)
def test_a_message_format_version_is_one_that_the_release_knows(release: str, taken: str, refused: str) -> None:
    """Measured: CreateTopics of 2.0.1 to 3.9.2, with each name of a version."""
    kafka_version = KafkaVersion.named(release)
    for value in taken.split():
        assert config_problem(kafka_version, {"message.format.version": value}) is None, value
    for value in refused.split():
        shown = value if kafka_version.at_least(3, 3) else f"`{value}`"
        problem = (
            f"Invalid value {value} for configuration message.format.version: Version {shown} is not a valid version"
        )
        assert config_problem(kafka_version, {"message.format.version": value}) == problem


@pytest.mark.parametrize("value", ["9" * 5000, "-" * 5000, "1e999", "nan", "inf", "٣"])
def test_a_hostile_value_is_just_a_wrong_one(value: str) -> None:
    for name in ("retention.ms", "min.cleanable.dirty.ratio", "segment.bytes"):
        assert config_problem(KafkaVersion.named("4.4"), {name: value}) is not None


def test_an_unknown_name_is_reported_before_a_bad_value() -> None:
    problem = config_problem(KafkaVersion.named("4.4"), {"retention.ms": "x", "no.such": "1"})
    assert problem == "Unknown topic config name: no.such"


def test_compaction_lags_must_not_cross() -> None:
    given = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    problem = "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    assert config_problem(KafkaVersion.named("4.4"), given) == problem
    assert config_problem(KafkaVersion.named("4.4"), given | {"max.compaction.lag.ms": "10"}) is None


def described(
    release: str, given: dict[str, str], settings: dict[str, str] | None = None
) -> dict[str, TopicConfigEntry]:
    kafka_version = KafkaVersion.named(release)
    entries = describe_topic(Settings.from_mapping(settings or {}, kafka_version), given)
    return {entry.name: entry for entry in entries}


def test_ba_92_a_default_comes_with_the_broker_setting_that_gives_it() -> None:
    entry = described("4.4", {})["max.message.bytes"]
    assert (entry.value, entry.source) == ("1048588", ConfigSource.DEFAULT)
    assert entry.synonyms == (("message.max.bytes", "1048588", ConfigSource.DEFAULT),)


def test_ba_92_a_default_without_such_a_setting_has_no_synonyms() -> None:
    entry = described("4.4", {})["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("604800000", ConfigSource.DEFAULT, ())


def test_ba_92_the_brokers_retention_is_a_topics_in_other_units() -> None:
    entry = described("4.4", {}, {"log.retention.hours": "2"})["retention.ms"]
    assert (entry.value, entry.source, entry.synonyms) == ("7200000", ConfigSource.DEFAULT, ())
    entry = described("4.4", {}, {"log.retention.hours": "2", "log.retention.ms": "7"})["retention.ms"]
    assert (entry.value, entry.source) == ("7", ConfigSource.STATIC_BROKER)
    assert [name for name, _, _ in entry.synonyms] == ["log.retention.ms", "log.retention.hours", "log.retention.hours"]


def test_ba_92_a_topics_own_value_stands_before_the_default() -> None:
    entries = described("2.8", {"cleanup.policy": " compact", "retention.ms": "1000"})
    assert entries["cleanup.policy"].value == "compact"
    assert entries["cleanup.policy"].synonyms == (
        ("cleanup.policy", "compact", ConfigSource.TOPIC),
        ("log.cleanup.policy", "delete", ConfigSource.DEFAULT),
    )
    assert entries["retention.ms"].synonyms == (("retention.ms", "1000", ConfigSource.TOPIC),)


def test_ba_92_a_broker_setting_that_was_given_is_static() -> None:
    entry = described("2.8", {}, {"message.max.bytes": "1048588"})["max.message.bytes"]
    assert entry.source is ConfigSource.STATIC_BROKER
    assert [source for _, _, source in entry.synonyms] == [ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT]


@pytest.mark.parametrize(("release", "source"), [("4.0", 5), ("4.1", 3), ("4.4", 3), ("latest", 3)])
def test_min_insync_replicas_is_a_dynamic_default_from_4_1_on(release: str, source: int) -> None:
    assert described(release, {})["min.insync.replicas"].source == source
