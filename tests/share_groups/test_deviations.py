"""Where kproto decides otherwise than real brokers (server/DEVIATIONS.md)."""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.share_partition import ACCEPT, Acknowledgement, Refused, SharePartition
from tests.membership.in_memory_transport import InMemoryTransport
from tests.share_groups.sharers import Sharers


def test_a_partition_that_does_not_exist_has_no_offset() -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    share.describe_offsets("t", partitions=[0, 5])
    topic = share.steps[-1].responses["admin"][0]["groups"][0]["topics"][0]
    assert [part["start_offset"] for part in topic["partitions"]] == [-1, -1]


def test_an_acknowledgement_across_the_start_offset_fails_for_its_partition_only() -> None:
    share = SharePartition(5, 5, 200)
    refused = share.acknowledge("A", [Acknowledgement(4, 5, (ACCEPT,))], 0, 1_000)
    assert isinstance(refused, Refused)
    assert refused.error == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize("by_fetch", [True, False])
def test_records_of_a_session_that_ends_are_available_at_once(by_fetch: bool) -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    for member in "AB":
        share.join(member)
        share.fetch(member, 0, wait_ms=0)
    share.produce(3)
    share.fetch("A")
    if by_fetch:
        share.fetch("A", epoch=-1)
    else:
        share.acknowledge("A", {}, epoch=-1)
    share.fetch("B")
    (partition,) = share.steps[-1].responses["B"][0]["responses"][0]["partitions"]
    assert partition["acquired_records"] == [{"first_offset": 0, "last_offset": 2, "delivery_count": 2}]


def test_a_partition_whose_state_is_replaced_has_no_records() -> None:
    """4.2.2 and 4.3.1 let a member acquire them (measured)."""
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create()
    share.join("A")
    share.fetch("A", 0, wait_ms=0)
    share.produce(3)
    share.fetch("A")
    share.heartbeat("A", epoch=-1)
    share.alter_offsets({"t": {0: 0}})
    share.heartbeat("A", epoch=0, topics=["t"])
    share.produce(1)
    share.fetch("A", acks={0: [(0, 2, [ACCEPT])]})
    (partition,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert partition["acknowledge_error_code"] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert "acquired_records" not in partition
    share.fetch("A")
    (partition,) = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert [(one["first_offset"], one["delivery_count"]) for one in partition["acquired_records"]] == [(0, 1)]


def test_the_first_fetch_has_the_records_of_all_partitions() -> None:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.configure(share_auto_offset_reset="earliest")
    share.create(partitions=2)
    share.produce(3, partition=0)
    share.produce(3, partition=1)
    share.join("A")
    share.fetch("A", 0, 1)
    partitions = share.steps[-1].responses["A"][0]["responses"][0]["partitions"]
    assert [one["acquired_records"][0]["last_offset"] for one in partitions] == [2, 2]
