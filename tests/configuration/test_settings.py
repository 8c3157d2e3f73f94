"""Settings have Kafka's names and the defaults of each release; impossible values are refused."""

import pytest

from kproto.properties import PropertiesError, read_properties
from kproto_server.configuration.settings import SETTINGS, ConfigSource, ConfigType, SettingError, Settings
from kproto_server.releases.kafka_version import KafkaVersion


def test_values_are_typed() -> None:
    settings = Settings.from_mapping(
        {
            "offsets.retention.minutes": "1440",
            "auto.create.topics.enable": "FALSE",
            "offsets.retention.override": "honour",
        }
    )
    assert settings.int("offsets.retention.minutes") == 1440
    assert settings.bool("auto.create.topics.enable") is False
    assert settings.str("offsets.retention.override") == "honour"
    assert settings.str("broker.rack") == ""


@pytest.mark.parametrize(
    ("given", "first"),
    [({}, 1), ({"broker.id": "0"}, 0), ({"node.id": "5"}, 5), ({"node.id": "1001", "broker.id": "1001"}, 1001)],
)
def test_the_first_node_has_the_given_id(given: dict[str, str], first: int) -> None:
    assert Settings.from_mapping(given).first_node_id == first


def test_two_different_ids_are_refused() -> None:
    with pytest.raises(SettingError, match=r"^node.id and broker.id differ: give one of them$"):
        Settings.from_mapping({"node.id": "1", "broker.id": "2"})


def test_blanks_around_a_value_are_ignored() -> None:
    assert Settings.from_mapping({"num.partitions": " +7 "}).str("num.partitions") == "7"


@pytest.mark.parametrize(
    ("name", "release", "default"),
    [
        ("offsets.retention.minutes", "1.1", "1440"),
        ("offsets.retention.minutes", "2.0", "10080"),
        ("offsets.retention.minutes", "latest", "10080"),
        ("offset.metadata.max.bytes", "0.8.1", "1024"),
        ("offset.metadata.max.bytes", "0.8.2", "4096"),
        ("delete.topic.enable", "0.11", "false"),
        ("delete.topic.enable", "1.0", "true"),
        ("group.max.session.timeout.ms", "0.9", "30000"),
        ("group.max.session.timeout.ms", "0.10.0", "300000"),
        ("group.max.session.timeout.ms", "2.2", "300000"),
        ("group.max.session.timeout.ms", "2.3", "1800000"),
        ("offsets.topic.replication.factor", "4.4", "3"),
    ],
)
def test_the_default_is_that_of_the_release(name: str, release: str, default: str) -> None:
    assert Settings(KafkaVersion.named(release)).str(name) == default


def test_a_setting_given_at_its_default_counts_as_set() -> None:
    settings = Settings.from_mapping({"offsets.topic.replication.factor": "3"})
    assert settings.is_set("offsets.topic.replication.factor")
    assert not settings.is_set("offsets.topic.num.partitions")


def test_later_settings_override_earlier_ones_in_a_new_object() -> None:
    first = Settings.from_mapping({"num.partitions": "2", "offset.metadata.max.bytes": "10"})
    second = first.with_values({"num.partitions": "3"}).with_assignments(["num.partitions=4", "num.partitions=5"])
    assert first.int("num.partitions") == 2
    assert second.int("num.partitions") == 5
    assert second.int("offset.metadata.max.bytes") == 10


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("num.partitions", "0", "num.partitions cannot be '0': give a whole number from 1 to 10000"),
        ("num.partitions", "10001", "whole number"),
        ("num.partitions", "many", "whole number"),
        ("num.partitions", "", "whole number"),
        ("num.partitions", "1_0", "whole number"),
        ("num.partitions", "٣", "whole number"),
        ("offsets.topic.replication.factor", "32768", "from 1 to 32767"),
        ("offsets.retention.minutes", "-1", "from 1 to"),
        ("auto.create.topics.enable", "yes", "auto.create.topics.enable cannot be 'yes': give true or false"),
        ("offsets.retention.override", "Honour", "give one of ignore, honour"),
    ],
)
def test_an_impossible_value_is_refused_in_one_line(name: str, value: str, why: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings.from_mapping({name: value})
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "offset.retention.minutes",
            "no broker setting 'offset.retention.minutes': did you mean offsets.retention.minutes?",
        ),
        ("zz", "no broker setting 'zz': check its spelling in Kafka's documentation of broker configs"),
        ("log.dirs", "log.dirs does nothing here: give a data directory (--data-dir)"),
        ("auto.leader.rebalance.enable", "auto.leader.rebalance.enable does nothing here: leave it out"),
        ("advertised.listeners", "advertised.listeners does nothing here: only kproto serve has listeners"),
    ],
)
def test_an_unknown_name_is_refused_in_one_line(name: str, why: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings.from_mapping({name: "1"})
    assert str(refused.value) == why


def test_a_setting_without_effect_is_accepted_only_at_its_default() -> None:
    with pytest.raises(SettingError, match="does nothing in kproto yet: leave it out, or at 5242880"):
        Settings.from_mapping({"offsets.load.buffer.size": "6000"})
    with pytest.raises(SettingError, match=r"does nothing in kproto yet: leave it out$"):
        Settings.from_mapping({"broker.rack": "r"})
    assert Settings.from_mapping({"offsets.load.buffer.size": "5242880"}).int("offsets.load.buffer.size") == 5242880


@pytest.mark.parametrize("assignment", ["num.partitions", "", "num.partitions 3"])
def test_an_assignment_without_equals_is_refused(assignment: str) -> None:
    with pytest.raises(SettingError, match=r"sets nothing: write .*=VALUE"):
        Settings().with_assignments([assignment])


def test_the_value_of_an_assignment_may_contain_equals() -> None:
    with pytest.raises(SettingError, match="cannot be '3=4'"):
        Settings().with_assignments(["num.partitions=3=4"])


@pytest.mark.parametrize("name", SETTINGS)
def test_every_default_is_a_valid_value(name: str) -> None:
    for release in ("0.8.0", "1.1", "2.0", "4.4"):
        kafka_version = KafkaVersion.named(release)
        default = SETTINGS[name].default_in(kafka_version)
        if default is not None:
            assert Settings.from_mapping({name: default}, kafka_version).str(name) == default


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({}, 604_800_000),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.minutes": "-5"}, -1),
    ],
)
def test_the_retention_setting_with_the_finest_unit_decides(given: dict[str, str], retention_ms: int) -> None:
    assert Settings.from_mapping(given).topic_default_ms("retention.ms") == retention_ms


@pytest.mark.parametrize("name", ["log.retention.ms", "log.retention.minutes", "log.retention.hours"])
def test_a_retention_of_zero_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="but 0"):
        Settings.from_mapping({name: "0"})


def test_entries_are_kafkas_settings_in_order_of_name() -> None:
    settings = Settings.from_mapping({"offsets.topic.num.partitions": "5"})
    entries = {entry.name: entry for entry in settings.entries()}
    assert list(entries) == sorted(entries)
    assert "offsets.retention.override" not in entries
    entry = entries["offsets.topic.num.partitions"]
    assert (entry.value, entry.read_only) == ("5", True)
    assert entry.sources == [(entry.name, "5", ConfigSource.STATIC_BROKER), (entry.name, "50", ConfigSource.DEFAULT)]
    assert entry.type is ConfigType.INT
    assert entries["broker.rack"].value is None
    assert not entries["max.connections"].read_only


def test_properties_are_parsed_as_in_java() -> None:
    text = "\n".join(
        [
            "# a comment",
            "! another",
            "",
            "  plain=1",
            "colon : 2",
            "blank\t3",
            "both = = 4",
            "last",
            "empty=",
            "long = a,\\",
            "       b,\\",
            "    c",
            "no\\=escape\\:here = x\\ty\\\\",
            "snow\\u0020man = \\u2603",
            "kept = trailing blank ",
            "twice=1",
            "twice=2",
            "odd = \\q",
        ]
    )
    assert read_properties(text) == {
        "plain": "1",
        "colon": "2",
        "blank": "3",
        "both": "= 4",
        "last": "",
        "empty": "",
        "long": "a,b,c",
        "no=escape:here": "x\ty\\",
        "snow man": "☃",
        "kept": "trailing blank ",
        "twice": "2",
        "odd": "q",
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_kind_of_line_end_ends_a_line(end: str) -> None:
    assert read_properties(f"a=1{end}#b=2{end}c=3\\{end} 4{end}") == {"a": "1", "c": "34"}


def test_an_even_number_of_backslashes_does_not_continue_a_line() -> None:
    assert read_properties("a=1\\\\\nb=2") == {"a": "1\\", "b": "2"}


def test_a_backslash_at_the_end_of_the_text_is_dropped() -> None:
    assert read_properties("a=1\\") == {"a": "1"}


def test_two_escapes_are_one_character_and_a_continued_empty_line_is_none() -> None:
    """As of Java; a half of a character alone has no encoding."""
    assert read_properties("a=\\ud83d\\ude00\nb=\\ud83d!") == {"a": "\U0001f600", "b": "\ufffd!"}
    assert read_properties("\\\n\na=1") == {"a": "1"}


@pytest.mark.parametrize("escape", ["\\u12", "\\uzzzz", "\\u", "\\u+123"])
def test_an_invalid_unicode_escape_is_refused_with_its_line_number(escape: str) -> None:
    with pytest.raises(PropertiesError, match=r"^line 2: "):
        read_properties(f"a=1\nb={escape}")


def test_all_faults_of_a_properties_file_are_listed() -> None:
    with pytest.raises(PropertiesError) as caught:
        read_properties("a=\\u1\nb=2\nc=\\uzzzz")
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["line 1", "line 3"]


def test_a_config_file_sets_settings_and_names_the_others() -> None:
    text = "# broker\noffsets.retention.minutes=60\nnum.partitions : 3\nnum.io.threads=16\nbroker.rack=a\n"
    settings, ignored = Settings().with_config_file(read_properties(text))
    assert (settings.int("offsets.retention.minutes"), settings.int("num.partitions")) == (60, 3)
    assert ignored == ["num.io.threads", "broker.rack"]


def test_all_faults_of_a_config_file_are_listed() -> None:
    with pytest.raises(SettingError) as caught:
        Settings().with_config_file({"num.partitions": "x", "no.such": "x", "log.retention.hours": "0"})
    assert [line.split()[0] for line in str(caught.value).splitlines()] == ["num.partitions", "log.retention.hours"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"group.consumer.session.timeout.ms": "3000"},
            "group.consumer.min.session.timeout.ms (45000) must be at most group.consumer.session.timeout.ms (3000)",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "20000"},
            "interval.ms (20000) must be at most group.consumer.max.heartbeat.interval.ms (15000)",
        ),
        (
            {"group.consumer.session.timeout.ms": "5000", "group.consumer.min.session.timeout.ms": "5000"},
            "group.consumer.heartbeat.interval.ms (5000) must be less than group.consumer.session.timeout.ms (5000)",
        ),
        ({"group.share.record.lock.duration.ms": "5000"}, "group.share.min.record.lock.duration.ms (15000) must be at"),
        ({"group.share.max.share.sessions": "100"}, "group.share.max.size (200) must be at most"),
        ({"group.share.assignment.interval.ms": "20000"}, "group.share.max.assignment.interval.ms (15000)"),
        ({"group.streams.session.timeout.ms": "3000"}, "group.streams.min.session.timeout.ms (45000) must be at most"),
    ],
)
def test_settings_of_groups_that_contradict_each_other_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings.from_mapping(given)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(SettingError):
        Settings().with_assignments([f"{name}={value}" for name, value in given.items()])


def test_settings_of_groups_are_not_compared_in_releases_without_them() -> None:
    settings = Settings.from_mapping({"group.consumer.session.timeout.ms": "3000"}, KafkaVersion.named("2.8"))
    assert settings.int("group.consumer.session.timeout.ms") == 3000


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_up_to_3_9_a_session_may_be_as_short_as_a_heartbeat_interval(kind: str) -> None:
    given = {f"group.{kind}.session.timeout.ms": "5000", f"group.{kind}.min.session.timeout.ms": "5000"}
    assert Settings.from_mapping(given, KafkaVersion.named("3.9")).int(f"group.{kind}.session.timeout.ms") == 5000
    with pytest.raises(SettingError, match="must be less than"):
        Settings.from_mapping(given, KafkaVersion.named("4.0" if kind == "consumer" else "4.1"))


def test_one_source_may_give_a_limit_that_another_needs() -> None:
    settings, _ = Settings().with_config_file({"group.consumer.session.timeout.ms": "3000"})
    settings = settings.with_assignments(
        ["group.consumer.min.session.timeout.ms=1000", "group.consumer.heartbeat.interval.ms=1000",
         "group.consumer.min.heartbeat.interval.ms=500"]
    )  # fmt: skip
    assert settings.int("group.consumer.session.timeout.ms") == 3000
