"""States of share partitions that no leader of a partition would store."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.in_memory_transport import InMemoryTransport
from tests.share_groups.sharers import Sharers
from tests.share_groups.states import SENDER, States


def started(start_offset: int = 0) -> Sharers:
    share = Sharers(InMemoryTransport.of("4.4"), KafkaVersion.named("4.4"), "n")
    share.create(partitions=2)
    share.alter_offsets({"t": {0: start_offset, 1: 0}})
    for partition in (0, 1):
        share.produce(1, partition=partition)
    return share


def last(share: Sharers, name: str) -> Any:
    return share.steps[-1].responses[name][0]


def test_an_unknown_delivery_state_is_an_error_of_its_partition_only() -> None:
    """The client never got a response."""
    share = started()
    States(share).write(1, 0, 0, batches=[(0, 0, 9, 1)])
    assert not last(share, SENDER)["results"][0]["partitions"][0]["error_code"]
    share.join("A")
    share.fetch("A", 0, 1, wait_ms=0)
    unknown, sound = last(share, "A")["responses"][0]["partitions"]
    assert unknown["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert sound["acquired_records"] == [{"first_offset": 0, "last_offset": 0, "delivery_count": 1}]


def test_a_lag_beyond_64_bits_wraps_around_as_in_java() -> None:
    """The connection was closed."""
    share = started(-(1 << 63))
    share.describe_offsets()
    described = last(share, "admin")["groups"][0]["topics"][0]["partitions"][0]
    assert (described["start_offset"], described["lag"]) == (-(1 << 63), 1 - (1 << 63))
