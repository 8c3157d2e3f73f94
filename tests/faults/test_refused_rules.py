"""A rule that can never act on a request is refused, and the text says why, in one line."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.errors import UsageError
from kproto_server.broker.fault_file import checked_faults
from kproto_server.releases.kafka_version import KafkaVersion

REFUSED: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"api": "Heartbeats", "close": True}, "latest", "there is no API 'Heartbeats': use Produce, "),
    ({"api": 999, "close": True}, "latest", "there is no API 999: use 0, "),
    ({"api": True, "close": True}, "latest", "api is a name or a number, not True"),
    (
        {"api": "ConsumerGroupHeartbeat", "close": True},
        "3.0",
        "Kafka version 3.0 does not serve ConsumerGroupHeartbeat",
    ),
    (
        {"api": "Fetch", "versions": "13-", "close": True},
        "2.0",
        "Kafka version 2.0 serves Fetch in versions 0 to 8, not 13",
    ),
    (
        {"api": "Fetch", "versions": "a", "close": True},
        "latest",
        "versions is a version or a range such as '0-4' or '5-'",
    ),
    ({"api": "Fetch", "versions": "4-3", "close": True}, "latest", "versions is a version or a range such as"),
    ({"versions": 3, "close": True}, "latest", "versions needs an api: each API has versions of its own"),
    (
        {"api": "Heartbeat", "topic": "t", "close": True},
        "latest",
        "Heartbeat has no topic: its filters are api, versions",
    ),
    (
        {"api": "Heartbeat", "error": "NOPE"},
        "latest",
        "there is no error 'NOPE': use UNKNOWN_SERVER_ERROR (-1), NONE (0)",
    ),
    ({"api": "Heartbeat", "error": "NONE"}, "latest", "error is an error code, not NONE (0)"),
    (
        {"api": "Produce", "error": 6, "place": "response"},
        "latest",
        "the response of Produce has no error code of its own",
    ),
    (
        {"api": "Heartbeat", "error": 6, "place": "items"},
        "latest",
        "the response of Heartbeat has no items with error codes",
    ),
    ({"api": "SaslHandshake", "throttle_ms": 1}, "latest", "the response of SaslHandshake has no throttle_time_ms"),
    ({"api": "Produce", "corrupt": "checksum"}, "latest", "the response of Produce has no records"),
    ({"api": "Produce", "magic": 1}, "latest", "the response of Produce has no records"),
    ({"api": "Fetch", "magic": 2}, "latest", "magic is 0 or 1, not 2"),
    ({"api": "Fetch", "empty": 1}, "latest", "empty is the name of a field, not 1"),
    (
        {"api": "FindCoordinator", "versions": "4-", "empty": "coordinator"},
        "latest",
        "the response of FindCoordinator can be empty only in coordinators, not in 'coordinator'",
    ),
    (
        {"api": "Heartbeat", "null": "error_code"},
        "latest",
        "the response of Heartbeat can be null in no field, not in 'error_code'",
    ),
    ({"empty": "customers"}, "latest", "no response has a field 'customers' that can be empty"),
    ({"unknown_tags": True}, "0.11.0", "the response of any API has no tagged fields in these versions"),
    (
        {"api": "Metadata", "versions": "0-8", "unknown_tags": True},
        "latest",
        "the response of Metadata has no tagged fields in these versions",
    ),
    (
        {"api": "Produce", "leader": 1},
        "latest",
        "leader is an action on Metadata and DescribeTopicPartitions, not on Produce",
    ),
    ({"leader": 3}, "latest", "node 3 does not exist: there are nodes 1, 2"),
    ({"leader": 1, "group": "g"}, "latest", "Metadata and DescribeTopicPartitions has no group"),
    ({"node_id": 3, "close": True}, "latest", "node 3 does not exist: there are nodes 1, 2"),
    ({"api": "Heartbeat"}, "latest", "a fault rule needs an action: one of delay_ms, error, "),
    ({}, "latest", "a fault rule needs an action"),
    ({"close": True, "reset": True}, "latest", "a fault rule has one action, not close, reset: add a rule for each"),
    ({"close": False}, "latest", "close is true or not given, not False"),
    ({"closes": True}, "latest", "a fault rule has no 'closes': conditions are api, versions, "),
    ({"close": True, "nth": 0}, "latest", "nth is a number from 1 on, not 0"),
    ({"close": True, "probability": 0}, "latest", "probability is a number above 0 and up to 1, not 0"),
    ({"close": True, "probability": 1.5}, "latest", "probability is a number above 0 and up to 1, not 1.5"),
    ({"close": True, "seed": 1}, "latest", "seed is an option of probability, not of close"),
    ({"close": True, "place": "items"}, "latest", "place is an option of error, not of close"),
    ({"throttle_ms": 5, "when": "after"}, "latest", "when is an option of error, no_response, close, reset, delay_ms"),
    (
        {"freeze": True, "delay_ms": 5, "when": "after"},
        "latest",
        "a heartbeat that freeze acts on takes no effect: when can't be after",
    ),
    ({"close": True, "when": "later"}, "latest", "when is before or after, not 'later'"),
    ({"max_versions": {"Fetches": 4}}, "latest", "there is no API 'Fetches'"),
    ({"max_versions": {}}, "latest", "max_versions has a greatest version for each of some APIs"),
    ({"max_versions": {"Fetch": "4"}}, "latest", "the greatest version of Fetch is a number from 0 on, not '4'"),
    ({"max_versions": {1: 4}}, "latest", "max_versions has names of APIs, not 1"),
    ({"max_versions": {"Fetch": 4}}, "0.9.0", "Kafka version 0.9.0 does not serve ApiVersions"),
)


@pytest.mark.parametrize(("rule", "kafka_version", "text"), REFUSED)
def test_the_reason(rule: Any, kafka_version: str, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked_faults([rule], KafkaVersion.named(kafka_version), (1, 2))
    assert str(refused.value).startswith(f"fault rule 1: {text}"), refused.value
    assert "\n" not in str(refused.value)
