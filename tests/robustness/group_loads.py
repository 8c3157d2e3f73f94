"""Loads of groups: records that a share group gives up."""

from __future__ import annotations

import itertools

from kproto.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.records.compression import Compression
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.releases.kafka_version import KafkaVersion
from kproto_server.share_groups.share_partition import REJECT
from tests.membership.socket_transport import SocketTransport
from tests.network.raw_client import RawClient
from tests.robustness.broker_process import BrokerProcess
from tests.robustness.measured_broker import Cost, cost_of
from tests.share_groups.sharers import Sharers
from tests.waiting import wait_until

PARTITIONS, RECORDS = 50, 2_000
LATEST = -1

_numbers = itertools.count()


def dead_letters(broker: BrokerProcess) -> Cost:
    """A member of a share group rejects 100,000 records, which go to the dead letter queue with their contents."""
    transport = SocketTransport(broker.address)
    share = Sharers(transport, KafkaVersion.named("latest"), f"dead{next(_numbers)}")
    share.create(partitions=PARTITIONS)
    share.create("q", prefix="dlq.", errors_deadletterqueue_group_enable="true")
    queue = f"dlq.{share.full('q')}"
    share.configure(
        share_auto_offset_reset="earliest",
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_copy_record_enable="true",
    )
    records = [Record(b"k", bytes(500), offset=offset, timestamp=1) for offset in range(RECORDS)]
    batch = build_record_batch(records, compression=Compression.GZIP)
    for partition in range(PARTITIONS):
        share.write(batch, "t", partition)
    share.join("A")
    share.fetch("A", *range(PARTITIONS), max_bytes=50 << 20, max_records=RECORDS * PARTITIONS)

    def reject() -> int:
        share.acknowledge("A", {index: [(0, RECORDS - 1, [REJECT])] for index in range(PARTITIONS)})
        with RawClient(broker.address) as client:
            wait_until(lambda: _end_of(client, queue) == RECORDS * PARTITIONS, "all dead letters")
        return 0

    cost = cost_of(broker, reject)
    transport.close()
    with RawClient(broker.address) as client:
        client.ask(DeleteTopicsRequest(topic_names=(share.full("t"), queue), timeout_ms=1000), 1)
    return cost


def _end_of(client: RawClient, topic: str) -> int:
    partitions = (ListOffsetsPartition(partition_index=0, timestamp=LATEST),)
    request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=partitions),))
    offset: int = client.ask(request, 4).topics[0].partitions[0].offset
    return offset


GROUP_LOADS = {f"{PARTITIONS * RECORDS:,} dead letters": dead_letters}
