"""A client's library is recognized by its software name, its client id or its versions, with the release to use."""

from __future__ import annotations

import pytest

from kproto_server.report import phrases
from kproto_server.report.libraries import recognize
from kproto_server.report.model import Report
from tests.report.samples import conversation, old_consumer, report_of

JAVA_0_9 = ((1, 1), (2, 0), (3, 0), (8, 2), (9, 1))
JAVA_0_10_1 = ((1, 3), (2, 1), (3, 2), (8, 2), (11, 1))


@pytest.mark.parametrize(
    ("client_id", "software", "name", "advice"),
    [
        ("app", ("apache-kafka-java", "2.4.0"), "Java client 2.4.0", "check its settings"),
        ("consumer-1", ("", ""), "Java client", "use 2.1.0 or newer"),
        ("consumer-billing-12", ("", ""), "Java client", "use 2.1.0 or newer"),
        ("rdkafka", ("", ""), "librdkafka", "use 1.8.2 or newer, without api.version.request=false"),
        ("kafka-python-1.4.7", ("", ""), "kafka-python 1.4.7", "use 2.0.2 or newer, without an older api_version"),
        ("kafka-python-2.0.2", ("", ""), "kafka-python 2.0.2", "check its settings, without an older api_version"),
        ("kafka-python-producer-1", ("", ""), "kafka-python", "use 2.0.2 or newer, without an older api_version"),
        ("kafkajs", ("", ""), "KafkaJS", "use 1.15.0 or newer"),
        ("aiokafka-0.5.0", ("", ""), "aiokafka 0.5.0", "use a newer release"),
        (
            "sarama",
            ("", ""),
            "Sarama",
            "use 1.30.1 or newer, with Config.Version of 2.1 or newer, the default since 1.41.0",
        ),
        ("x@host (github.com/segmentio/kafka-go)", ("", ""), "kafka-go", "use a newer release"),
    ],
)
def test_software_names_and_default_client_ids_show_the_library(
    client_id: str, software: tuple[str, str], name: str, advice: str
) -> None:
    found = recognize(client_id, *software, (), negotiates=True)
    assert found is not None
    assert (found.name, found.advice) == (name, advice)


@pytest.mark.parametrize(("client_id", "software"), [("billing", ("", "")), ("consumer-1", ("my-own", "1.0"))])
def test_other_names_show_no_library(client_id: str, software: tuple[str, str]) -> None:
    assert recognize(client_id, *software, (), negotiates=True) is None


def test_the_versions_of_a_client_that_does_not_negotiate_show_the_release_of_the_java_client() -> None:
    for sent, release in ((JAVA_0_9, "0.9.0"), (JAVA_0_10_1, "0.10.1")):
        found = recognize("billing", "", "", sent, negotiates=False)
        assert found is not None
        assert found.name == f"Java client {release}"
    assert recognize("billing", "", "", JAVA_0_9, negotiates=True) is None
    assert recognize("billing", "", "", ((2, 0), (3, 0)), negotiates=False) is None, "many libraries send these two"
    assert recognize("billing", "", "", ((1, 1), (2, 1), (3, 2)), negotiates=False) is None, "no release sends these"


@pytest.mark.parametrize(
    ("recording", "names"),
    [
        ("4.4.0-aiokafka", {"aiokafka 0.14.0", "aiokafka"}),
        ("4.4.0-confluent", {"librdkafka 2.16.1-rdkafka-2.16.0"}),
        ("4.4.0-java-1.1.1-describe", {"Java client"}),
        ("4.4.0-java-3.9.2-describe", {"Java client 3.9.2"}),
        ("4.4.0-kafka-python", {"kafka-python 3.0.12"}),
    ],
)
def test_the_recorded_clients_are_recognized(recording: str, names: set[str]) -> None:
    clients = report_of(conversation(recording)).clients
    assert {client.library.name for client in clients if client.library} == names


def advice_for(target: str) -> str:
    report: Report = report_of(old_consumer(), target=target)
    (client,) = report.clients
    return phrases.library(client, report.target)


def test_the_advice_is_for_releases_that_removed_versions() -> None:
    assert advice_for("4.4") == "Java client 0.9.0: use 2.1.0 or newer"
    assert advice_for("3.9") == "Java client 0.9.0"


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("4.0", "Kafka 4.0.0 does not serve JoinGroup v0 and v1 (--target 4.0.0)"),
        ("4.0.0", "Kafka 4.0.1 and newer also serve JoinGroup v0 and v1 (--target 4.0)"),
        ("4.1", ""),
        ("3.9", ""),
    ],
)
def test_patch_releases_that_differ_are_named(target: str, sentence: str) -> None:
    assert phrases.patch_releases(report_of(old_consumer(), target=target)) == sentence
