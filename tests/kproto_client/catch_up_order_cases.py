"""KIP-333 with real clients: which records come first, those of a catch-up, of other partitions or of other keys.

Each case is a function of a `KafkaFixture`.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import TopicPartition

from kproto.client import Consumer
from tests.kproto_client.catch_up_cases import ON, behind, consume_records, parallel_of, serve
from tests.kproto_client.kafka_fixture import LIMIT_S, Case, KafkaFixture, cases, read, unique_name
from tests.waiting import wait_until

BY_KEY: dict[str, Any] = {**ON, "parallel_rebalance_order": "key"}
KEYS = [b"order %d" % number for number in range(20_000)]


def two_partitions(kafka: KafkaFixture) -> tuple[str, str]:
    """Create a topic whose partition 0 has records, and a group that is behind in it."""
    topic, group = kafka.topic(2), unique_name("group")
    kafka.write(topic, 60_000)
    for partition in range(2):
        kafka.commit(group, topic, 0, partition=partition)
    return topic, group


def read_partition1(consumer: Consumer, count: int, end: int) -> int:
    """Read with `poll`, or `consume` of more records, until partition 1 has been read to its end.

    Return how many records of partition 0 came meanwhile.
    """
    found = {0: 0, 1: 0}
    limit = time.monotonic() + LIMIT_S
    while found[1] < end:
        assert time.monotonic() < limit, found
        for message in consumer.consume(count, 0.1) if count > 1 else [consumer.poll(0.1)]:
            if message is not None and message.error() is None:
                found[message.partition() or 0] += 1
    return found[0]


def normal_partitions_share(kafka: KafkaFixture) -> None:
    """CK-55: the other partitions of a member are not delayed by a catch-up, with `poll` and with `consume`."""
    for count in (1, 100):
        topic, group = two_partitions(kafka)
        with kafka.consumer(group, **ON) as consumer:
            consumer.subscribe([topic])
            read(consumer, 1)
            consumer.pause([TopicPartition(topic, 0)])
            kafka.write(topic, 10_000, partition=1)
            read(consumer, 1)
            consumer.resume([TopicPartition(topic, 0)])
            read_partition1(consumer, count, 9_999)
            assert (topic, 0) in parallel_of(consumer).catch_ups, (
                "partition 1 is ready before partition 0 has caught up"
            )


def wait_until_fetched(consumer: Consumer, partition: TopicPartition, end: int) -> None:
    """Wait until librdkafka has fetched since the log end was `end`, without delivering records."""
    wait_until(lambda: consumer.get_watermark_offsets(partition, cached=True)[1] == end, f"records up to {end}")


def catch_up_keeps_its_share(kafka: KafkaFixture) -> None:
    """CK-55: a catch-up is not delayed by other partitions whose records are ready all the time."""
    for count in (1, 100):
        topic, group = two_partitions(kafka)
        with kafka.consumer(group, **ON) as consumer:
            consumer.subscribe([topic])
            read(consumer, 1)
            kafka.write(topic, 20_000, partition=1)
            wait_until_fetched(consumer, TopicPartition(topic, 1), 20_000)
            others = read_partition1(consumer, count, 20_000)
            assert others >= 10_000, "as many as of partition 1, as far as both are ready"


def fill_buffer1(consumer: Consumer, topic: str, end: int) -> None:
    """Wait until consumer 1 has read up to the new log end, without delivering records."""
    delivery, catch_up = consumer._delivery, parallel_of(consumer).catch_ups[topic, 0]
    assert delivery is not None

    def filled() -> bool:
        assert delivery._poll_consumer1(1) == []
        return catch_up.consumer1_position >= end

    wait_until(filled, f"consumer 1 at {end}")


def a_batch_overfills_buffer1(kafka: KafkaFixture) -> None:
    """CK-65: consumer 1 reads several records at once, and continues after the user's pause of a full partition."""
    topic, group = behind(kafka, 0, 300)
    partition = TopicPartition(topic, 0)
    with kafka.consumer(group, **ON, parallel_rebalance_buffer_bytes=1) as consumer:
        consumer.subscribe([topic])
        offsets = read(consumer, 1)
        kafka.write(topic, 200)
        wait_until_fetched(consumer, partition, 500)
        delivery, catch_up = consumer._delivery, parallel_of(consumer).catch_ups[topic, 0]
        assert delivery is not None
        wait_until(lambda: delivery._poll_consumer1(100) == [] and catch_up.buffer1_is_full, "a full buffer 1")
        consumer.pause([partition])
        consumer.resume([partition])
        assert offsets + read(consumer, 499) == list(range(500))


def keyed_behind(kafka: KafkaFixture, committed: int = 0) -> tuple[str, str]:
    """Create a topic with a record of each key, and a group that is behind."""
    topic, group = kafka.topic(), unique_name("group")
    kafka.write(topic, len(KEYS), keys=KEYS)
    kafka.commit(group, topic, committed)
    return topic, group


def order_by_key_does_not_wait_for_other_keys(kafka: KafkaFixture) -> None:
    """CK-92, CK-63: a new order is delivered before old ones, an update of an old order after that order."""
    topic, group = keyed_behind(kafka)
    end = len(KEYS)
    with kafka.consumer(group, **BY_KEY) as consumer:
        consumer.subscribe([topic])
        offsets = read(consumer, 1)
        serve(consumer)
        kafka.write(topic, 200, keys=[b"new order", KEYS[-1]])
        fill_buffer1(consumer, topic, end + 200)
        while len([offset for offset in offsets if offset >= end]) < 100:
            offsets += read(consumer, 1)
        assert [offset for offset in offsets if offset >= end] == list(range(end, end + 200, 2))
        assert max(offset for offset in offsets if offset < end) < end - 1, "the range is not delivered"
        consumer.commit(asynchronous=False)
        committed = kafka.committed(group, topic)
        assert committed == consumer.position([TopicPartition(topic, 0)])[0].offset
        assert committed == max(offset for offset in offsets if offset < end) + 1
        offsets += read(consumer, end + 200 - len(offsets))
        assert sorted(offsets) == list(range(end + 200))
        assert [offset for offset in offsets if offset < end] == list(range(end))
        last_of_range = offsets.index(end - 1)
        updates = [offset for offset in offsets[last_of_range:] if offset >= end]
        assert updates == list(range(end + 1, end + 200, 2)), "updates of the last order, in order"
        kafka.write(topic, 1)
        assert read(consumer, 1) == [end + 200]
        consumer.commit(asynchronous=False)
    assert kafka.committed(group, topic) == end + 201


def commits_with_order_by_key(kafka: KafkaFixture) -> None:
    """CK-75, CK-73: the commit of a new record covers what is delivered without a gap; the next owner skips nothing."""
    topic, group = keyed_behind(kafka)
    end = len(KEYS)
    with kafka.consumer(group, **BY_KEY) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        serve(consumer)
        kafka.write(topic, 1, keys=[b"new order"])
        fill_buffer1(consumer, topic, end + 1)
        delivered = 1
        while True:
            (message,) = consume_records(consumer, 1)
            if message.offset() == end:
                break
            delivered += 1
        for arguments in ({"message": message}, {"offsets": [TopicPartition(topic, 0, end + 1)]}):
            consumer.commit(**arguments, asynchronous=False)
            assert kafka.committed(group, topic) == (delivered if delivered < end else end + 1)
        consumer.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        assert kafka.committed(group, topic) == 5
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert read(consumer, end - 4) == list(range(5, end + 1))


def ends_read(consumer: Consumer, count: int) -> dict[int | None, int | None]:
    """Poll until so many partitions have ended; return their ends."""
    ends: dict[int | None, int | None] = {}

    def have_ended() -> bool:
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            ends[message.partition()] = message.offset()
        return len(ends) == count

    wait_until(have_ended, f"the ends of {count} partitions")
    return ends


def each_partition_has_an_end(kafka: KafkaFixture) -> None:
    """CK-61: also the last one of several, of which consumer 1 has found the ends while they caught up."""
    topic, group = behind(kafka, 0, 30, partitions=3)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        assert ends_read(consumer, 3) == {0: 30, 1: 30, 2: 30}


def a_seek_cancels_a_partition_end(kafka: KafkaFixture) -> None:
    """CK-67: as in librdkafka, the end comes after the records from the sought position on."""
    topic, group = behind(kafka, 0, 300)
    with kafka.consumer(group, **ON) as consumer:
        consumer.subscribe([topic])
        read(consumer, 1)
        delegate = consumer._delegate
        assert delegate is not None
        wait_until(lambda: (consumer.poll(0), bool(delegate.delivery._partition_ends))[1], "the end of consumer 1")
        consumer.seek(TopicPartition(topic, 0, 290))
        assert [each.offset() for each in consumer.consume(11, LIMIT_S)] == list(range(290, 301))


CASES: dict[str, Case] = cases(
    each_partition_has_an_end,
    a_seek_cancels_a_partition_end,
    normal_partitions_share,
    catch_up_keeps_its_share,
    a_batch_overfills_buffer1,
    order_by_key_does_not_wait_for_other_keys,
    commits_with_order_by_key,
)
