"""Members of share groups that exceed the quota of a consumer, as measured on 4.4.0."""

from __future__ import annotations

from typing import Any

from kproto.codes import ErrorCode
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k78_share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic, ShareFetchRequest
from kproto_server.testing import InMemoryBroker
from kproto_server.testing.in_memory import ConnectedPair
from tests.throttling.test_throttling import pause_ms, produce, set_quota

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
SIZE = 150_000


class Sharer:
    """The member of a share group whose client may receive 200,000 bytes at once."""

    def __init__(self, records: int) -> None:
        self.broker = InMemoryBroker(topics={"orders": 1}, kafka_version="4.4")
        self.broker.state.cluster.ensure_offsets_topic(self.broker.clock.now_ms())
        self.client: ConnectedPair = self.broker.connect("app")
        joins = ShareGroupHeartbeatRequest(
            group_id="g", member_id=MEMBER, member_epoch=0, subscribed_topic_names=("orders",)
        )
        joined: Any = self.client.ask(joins, 1)
        assert joined.error_code == 0
        self.epoch = 0
        self.fetch()  # the share partition begins at its end
        for _ in range(records):
            self.broker.connect().ask(produce(SIZE), 9)
        set_quota(self.broker, "consumer_byte_rate", 20_000.0)

    def fetch(self, *acknowledged: int) -> Any:
        batches = tuple(
            AcknowledgementBatch(first_offset=one, last_offset=one, acknowledge_types=(1,)) for one in acknowledged
        )
        asked = FetchTopic(
            topic_id=self.broker.state.cluster.topics["orders"].topic_id,
            partitions=(FetchPartition(partition_index=0, acknowledgement_batches=batches),),
        )
        request = ShareFetchRequest(
            group_id="g",
            member_id=MEMBER,
            share_session_epoch=self.epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=100,
            batch_size=100,
            topics=(asked,) if batches or not self.epoch else (),
            forgotten_topics_data=(),
        )
        response: Any = self.client.ask(request, 1)
        if response.error_code == 0:
            self.epoch += 1
        return response


def records_of(response: Any) -> list[tuple[int, int]]:
    """Return which records the response has, by their first and last offset."""
    parts = [part for topic in response.responses for part in topic.partitions]
    acquired = [one for part in parts for one in part.acquired_records]
    assert all(bool(part.records) is bool(part.acquired_records) for part in parts)
    return [(one.first_offset, one.last_offset) for one in acquired]


def test_a_throttled_share_fetch_has_no_records_but_acquires_them() -> None:
    sharer = Sharer(4)
    assert records_of(sharer.fetch()) == [(0, 0)], "more would be throttled each time"
    throttled = sharer.fetch()
    assert 4900 < throttled.throttle_time_ms < 5100
    assert (throttled.error_code, throttled.responses) == (0, ())
    assert throttled.acquisition_lock_timeout_ms == 30_000
    assert pause_ms(sharer.broker, sharer.client) == throttled.throttle_time_ms
    sharer.broker.advance(milliseconds=10_000)
    assert records_of(sharer.fetch()) == [(2, 2)]


def test_a_throttled_share_fetch_has_the_results_of_its_acknowledgements() -> None:
    sharer = Sharer(4)
    sharer.fetch()
    errors = []
    for acknowledged in (0, 7):
        throttled = sharer.fetch(acknowledged)
        assert throttled.throttle_time_ms
        [[part]] = [topic.partitions for topic in throttled.responses]
        assert not part.records
        assert not part.acquired_records
        errors.append(part.acknowledge_error_code)
        sharer.broker.advance(milliseconds=throttled.throttle_time_ms)
    assert errors == [0, ErrorCode.INVALID_REQUEST]


def test_a_refused_share_fetch_is_not_throttled() -> None:
    sharer = Sharer(0)
    set_quota(sharer.broker, "consumer_byte_rate", 0.1)
    sharer.epoch = 99
    refused = sharer.fetch()
    assert (refused.error_code, refused.throttle_time_ms) == (ErrorCode.INVALID_SHARE_SESSION_EPOCH, 0)
