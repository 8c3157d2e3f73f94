"""Clients that read committed records and offsets."""

from __future__ import annotations

from typing import Any

from kproto.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from kproto.records.batches import read_batches
from tests.simulator.broker import TOPIC
from tests.simulator.clients.client import GROUP, MOVED, RETRY_MS, Client, Steps

UNCOMMITTED, COMMITTED = 0, 1


class Reader(Client):
    """Reads committed records from the beginning on, and the offsets of all groups now and then."""

    def main(self) -> Steps[None]:
        positions = dict.fromkeys(range(self.surroundings.partition_count), 0)
        while not self.finishing:
            partition = self.random_partition()
            request = fetch_request(partition, positions[partition], COMMITTED, max_wait_ms=self.chance.choice((0, 80)))
            response = yield from self.ask_leader(partition, request, 11)
            found = None if response is None else response.responses[0].partitions[0]
            if found is not None and found.error_code:
                self.forget_leader(partition)
            elif found is not None:
                for batch in read_batches(found.records or b""):
                    positions[partition] = batch.last_offset + 1
            if self.surroundings.groups and self.chance.random() < 0.5:
                group = self.chance.choice(tuple(self.surroundings.groups))
                yield from fetch_offsets(self, group, require_stable=self.chance.random() < 0.5)
            yield self.chance.randrange(20, 150)


class FinalReader(Client):
    """Reads all records, committed and not, and the offsets of all groups, until there is no error."""

    def main(self) -> Steps[None]:
        for partition in range(self.surroundings.partition_count):
            for isolation_level in (UNCOMMITTED, COMMITTED):
                while True:
                    response = yield from self.ask_leader(partition, fetch_request(partition, 0, isolation_level), 11)
                    if response is not None and not response.responses[0].partitions[0].error_code:
                        break
                    self.forget_leader(partition)
                    yield RETRY_MS
        for group in self.surroundings.groups:
            while (yield from fetch_offsets(self, group, require_stable=True)):
                yield RETRY_MS


def fetch_request(partition: int, offset: int, isolation_level: int, max_wait_ms: int = 0) -> FetchRequest:
    """Return a request for the records of one partition."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        isolation_level=isolation_level,
        topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),),
    )


def fetch_offsets(client: Client, group: str, *, require_stable: bool) -> Steps[bool]:
    """Fetch the offsets of all partitions of a group; return whether there was an error."""
    partitions = tuple(range(client.surroundings.partition_count))
    topics = (OffsetFetchRequestTopic(name=TOPIC, partition_indexes=partitions),)
    request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=require_stable)
    response: Any = yield from client.ask_coordinator(group, GROUP, request, 7)
    if response is None:
        return True
    if response.error_code in MOVED:
        client.forget_coordinator(group, GROUP)
    return bool(response.error_code or any(one.error_code for topic in response.topics for one in topic.partitions))
