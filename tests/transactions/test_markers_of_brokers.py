"""WriteTxnMarkers to brokers that do not lead a partition."""

from __future__ import annotations

import pytest

from kproto.messages.k27_write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.coordinator.broker_state import ask, new_state


@pytest.mark.parametrize(("release", "version"), [("2.8", 0), ("4.4", 1)])
def test_a_broker_without_the_partition_does_not_know_it(release: str, version: int) -> None:
    """Measured on 2.8.2 and 4.4.0 with two brokers: only a follower says that it is not the leader."""
    state = new_state(release, node_count=3)
    partition = state.cluster.topics["t"].partitions[0]
    partition.replicas, partition.isr, partition.leader = [1, 2], [1, 2], 1
    marker = WritableTxnMarker(
        producer_id=1,
        producer_epoch=0,
        transaction_result=True,
        coordinator_epoch=0,
        topics=(WritableTxnMarkerTopic(name="t", partition_indexes=(0,)),),
    )
    responses = [ask(state, WriteTxnMarkersRequest(markers=(marker,)), version, node_id=node) for node in (2, 3)]
    assert [one.markers[0].topics[0].partitions[0].error_code for one in responses] == [6, 3]
