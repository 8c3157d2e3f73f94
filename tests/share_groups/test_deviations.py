"""Where kproto decides otherwise than real brokers (server/DEVIATIONS.md)."""

from __future__ import annotations

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
