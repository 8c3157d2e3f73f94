"""The verdict on a request for a target release: by rule, and without false alarms for clients that work with it."""

from __future__ import annotations

import pytest

from kproto_server.releases.kafka_version import KafkaVersion, UnknownKafkaVersion, kafka_version_names
from kproto_server.report.verdict import Releases, Verdict, releases, served_versions, target_named, verdict
from tests.fixture_files import conversations
from tests.report.samples import conversation, old_consumer, report_of

PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT = 0, 1, 2, 3, 8
JOIN_GROUP, API_VERSIONS, DESCRIBE_TOPIC_PARTITIONS = 11, 18, 75


def verdict_on(
    api_key: int, api_version: int, *, target: str, negotiates: bool = True, kafka_version: str = "latest"
) -> Verdict:
    return verdict(
        api_key,
        api_version,
        negotiates=negotiates,
        kafka_version=KafkaVersion.named(kafka_version),
        target=target_named(target),
    )


@pytest.mark.parametrize("negotiates", [True, False])
def test_a_version_that_the_target_serves_is_served(negotiates: bool) -> None:
    assert verdict_on(OFFSET_COMMIT, 2, target="4.0", negotiates=negotiates) is Verdict.SERVED


@pytest.mark.parametrize("negotiates", [True, False])
def test_a_highest_version_below_the_targets_lowest_breaks(negotiates: bool) -> None:
    assert verdict_on(FETCH, 3, target="4.0", negotiates=negotiates) is Verdict.BREAKS
    assert verdict_on(FETCH, 3, target="3.9", negotiates=negotiates) is Verdict.SERVED


def test_a_version_above_the_targets_highest_breaks_only_clients_that_do_not_negotiate() -> None:
    assert verdict_on(OFFSET_COMMIT, 10, target="2.0", negotiates=True) is Verdict.NEWER
    assert verdict_on(OFFSET_COMMIT, 10, target="2.0", negotiates=False) is Verdict.BREAKS


def test_an_api_that_the_target_does_not_have_breaks_only_clients_that_do_not_negotiate() -> None:
    assert verdict_on(DESCRIBE_TOPIC_PARTITIONS, 0, target="2.0", negotiates=True) is Verdict.NEWER
    assert verdict_on(DESCRIBE_TOPIC_PARTITIONS, 0, target="2.0", negotiates=False) is Verdict.BREAKS


def test_a_clients_highest_version_is_unknown_if_the_kafka_version_limits_it() -> None:
    assert verdict_on(LIST_OFFSETS, 0, target="4.0", kafka_version="0.10.0") is Verdict.UNDECIDED
    assert verdict_on(FETCH, 2, target="4.0", kafka_version="0.10.0") is Verdict.UNDECIDED


def test_a_version_below_the_kafka_versions_highest_is_the_clients_highest() -> None:
    assert verdict_on(FETCH, 1, target="4.0", kafka_version="0.10.0") is Verdict.BREAKS


def test_the_kafka_version_does_not_limit_clients_that_do_not_negotiate() -> None:
    assert verdict_on(FETCH, 2, target="4.0", kafka_version="0.10.0", negotiates=False) is Verdict.BREAKS


@pytest.mark.parametrize("api_version", [0, 3, 5, 99])
def test_api_versions_never_breaks(api_version: int) -> None:
    found = {verdict_on(API_VERSIONS, api_version, target=line) for line in kafka_version_names()}
    assert Verdict.BREAKS not in found


def test_api_versions_is_undecided_for_a_target_without_it() -> None:
    assert verdict_on(API_VERSIONS, 0, target="0.9.0") is Verdict.UNDECIDED


def test_produce_below_3_breaks_although_4_0_advertises_it() -> None:
    assert verdict_on(PRODUCE, 2, target="4.0") is Verdict.BREAKS
    assert served_versions(PRODUCE, target_named("4.0")) == (3, 12)


def test_only_4_0_0_does_not_serve_join_group_below_2() -> None:
    assert verdict_on(JOIN_GROUP, 1, target="4.0.0") is Verdict.BREAKS
    assert verdict_on(JOIN_GROUP, 1, target="4.0") is Verdict.SERVED
    assert releases(JOIN_GROUP, 1, target_named("4.0.0")) == Releases("0.10.1", "3.9")


def test_a_version_that_no_release_serves_is_newer() -> None:
    assert verdict_on(METADATA, 99, target="4.4") is Verdict.NEWER
    assert releases(METADATA, 99, target_named("4.4")) == Releases(None, None)


def test_the_default_target_is_the_newest_release() -> None:
    newest = kafka_version_names()[-1]
    assert target_named(None).name == newest
    assert target_named("latest").name == newest
    assert not target_named("latest").is_latest


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(UnknownKafkaVersion, match=r"no Kafka release '9\.9'"):
        target_named("9.9")


@pytest.mark.parametrize("name", conversations())
def test_recorded_clients_of_a_real_4_4_0_have_no_breaks_on_4_4_0(name: str) -> None:
    report = report_of(conversation(name), target="4.4.0")
    assert report.request_count > 0
    assert {sent.verdict for client in report.clients for sent in client.sent} == {Verdict.SERVED}


@pytest.mark.parametrize("target", ["2.0", "3.9", "4.0"])
@pytest.mark.parametrize("name", conversations())
def test_recorded_clients_negotiate_and_have_no_breaks_on_older_targets(name: str, target: str) -> None:
    report = report_of(conversation(name), target=target)
    assert all(client.negotiates for client in report.clients)
    assert not report.would_break


def test_a_consumer_of_0_9_breaks_on_4_0_by_fetch_and_list_offsets() -> None:
    report = report_of(old_consumer(), target="4.0")
    assert [(client.client_id, sent.name) for client, sent in report.with_verdict(Verdict.BREAKS)] == [
        ("consumer-1", "Fetch v1"),
        ("consumer-1", "ListOffsets v0"),
    ]
    assert not report_of(old_consumer(), target="3.9").would_break
