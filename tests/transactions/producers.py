"""Transactional producers, and the transcript of the responses that they get.

A script is a function that makes producers send requests (`scripts`). The transports are those of `tests.membership`.
Transcripts can be compared: producer ids, which brokers choose, are replaced by the order in which they first occur.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kproto.codes import ErrorCode
from kproto.declaration import Struct, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest, EndTxnResponse
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.records.batch_header import TRANSACTIONAL
from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import Step, Transport

TIERS: Mapping[int, Mapping[int, int]] = {
    # Clients of 0.11, of 3.8 to 3.9, and of 4.x; a release without these versions uses its newest.
    0: {0: 3, 9: 1, 22: 0, 24: 0, 25: 0, 26: 0, 28: 0},
    4: {0: 11, 9: 7, 22: 5, 24: 3, 25: 4, 26: 4, 28: 4},
    5: {0: 12, 9: 9, 22: 5, 24: 3, 25: 4, 26: 5, 28: 5},
}

COMES_LATER = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors after which a producer sends its request again."""
ATTEMPTS = 100
PAUSE_MS = 50

UNKNOWN = -1


def tiers_of(release: str) -> list[int]:
    """Return the tiers of API versions that differ in a release."""
    versions = KafkaVersion.named(release).api_versions
    found: dict[tuple[int, ...], int] = {}
    for tier, limits in TIERS.items():
        found.setdefault(
            tuple(max(versions[key][0], min(versions[key][1], limit)) for key, limit in limits.items()), tier
        )
    return list(found.values())


class Producers:
    """Producers of one script; each of their requests is a step of the transcript."""

    def __init__(self, transport: Transport, kafka_version: KafkaVersion, name: str, tier: int) -> None:
        self.steps: list[Step] = []
        self.name = name
        """Begins the transactional ids and groups of the script."""
        self.tier = tier
        self.kafka_version = kafka_version
        self.ids: dict[str, tuple[int, int]] = {}
        """Producer id and epoch by transactional id."""
        self._transport = transport
        self._names: dict[int, str] = {}

    # Requests. ``pid`` and ``epoch``: those of the newest response for the transactional id, unless given.

    def init(
        self,
        transactional_id: str | None = "a",
        *,
        timeout_ms: int = 60_000,
        pid: int = UNKNOWN,
        epoch: int = UNKNOWN,
        waits: bool = True,
    ) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._full(transactional_id) if transactional_id else transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=pid,
            producer_epoch=epoch,
        )
        response = self.send(request, waits=waits)
        assert isinstance(response, InitProducerIdResponse)
        if transactional_id and not response.error_code:
            self.ids[transactional_id] = response.producer_id, response.producer_epoch

    def bump(self, transactional_id: str = "a", *, pid: int | None = None, epoch: int | None = None) -> None:
        """Send InitProducerId with the present id and epoch (KIP-360)."""
        known = self._id(transactional_id, pid, epoch)
        self.init(transactional_id, pid=known[0], epoch=known[1])

    def add(
        self,
        transactional_id: str = "a",
        topics: Mapping[str, Sequence[int]] | None = None,
        *,
        pid: int | None = None,
        epoch: int | None = None,
        waits: bool = True,
    ) -> None:
        known = self._id(transactional_id, pid, epoch)
        self.send(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._full(transactional_id) if transactional_id else "",
                v3_and_below_producer_id=known[0],
                v3_and_below_producer_epoch=known[1],
                v3_and_below_topics=_topics({"t": (0,)} if topics is None else topics),
            ),
            waits=waits,
        )

    def add_batch(self, *wanted: tuple[str, Mapping[str, Sequence[int]], bool], version: int) -> None:
        """Send AddPartitionsToTxn for several transactional ids, as brokers do."""
        transactions = []
        for transactional_id, topics, verify_only in wanted:
            pid, epoch = self._id(transactional_id, None, None)
            transactions.append(
                AddPartitionsToTxnTransaction(
                    transactional_id=self._full(transactional_id) if transactional_id else "",
                    producer_id=pid,
                    producer_epoch=epoch,
                    verify_only=verify_only,
                    topics=_topics(topics),
                )
            )
        self.send(AddPartitionsToTxnRequest(transactions=tuple(transactions)), version)

    def add_offsets(
        self, transactional_id: str = "a", group: str = "g", *, pid: int | None = None, epoch: int | None = None
    ) -> None:
        known = self._id(transactional_id, pid, epoch)
        self.send(
            AddOffsetsToTxnRequest(
                transactional_id=self._full(transactional_id) if transactional_id else "",
                producer_id=known[0],
                producer_epoch=known[1],
                group_id=self._full(group) if group else group,
            )
        )

    def commit_offsets(
        self,
        transactional_id: str = "a",
        group: str = "g",
        offsets: Mapping[str, Mapping[int, int]] | None = None,
        *,
        pid: int | None = None,
        epoch: int | None = None,
        metadata: str | None = "m",
        **member: Any,
    ) -> None:
        known = self._id(transactional_id, pid, epoch)
        self.send(
            TxnOffsetCommitRequest(
                transactional_id=self._full(transactional_id) if transactional_id else "",
                group_id=self._full(group) if group else group,
                producer_id=known[0],
                producer_epoch=known[1],
                topics=tuple(
                    TxnOffsetCommitRequestTopic(
                        name=topic,
                        partitions=tuple(
                            TxnOffsetCommitRequestPartition(
                                partition_index=index, committed_offset=offset, committed_metadata=metadata
                            )
                            for index, offset in partitions.items()
                        ),
                    )
                    for topic, partitions in (offsets or {"t": {0: 5}}).items()
                ),
                **(member if self.version(28) >= 3 else {}),
            )
        )

    def fetch_offsets(self, group: str = "g", *, stable: bool = False) -> None:
        version = self.version(9)
        full = self._full(group)
        if version >= 8:
            topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0, 1)),)
            request = OffsetFetchRequest(
                groups=(OffsetFetchRequestGroup(group_id=full, topics=topics),), require_stable=stable
            )
        else:
            request = OffsetFetchRequest(
                group_id=full,
                topics=(OffsetFetchRequestTopic(name="t", partition_indexes=(0, 1)),),
                require_stable=stable and version >= 7,
            )
        self.send(request)

    def fetch_both_offsets(self) -> None:
        """Fetch the offsets without and with ``require_stable``."""
        for stable in (False, True):
            self.fetch_offsets(stable=stable)

    def find_coordinator(self, group: str = "g") -> None:
        self.send(FindCoordinatorRequest(key=self._full(group)), 0)

    def end(
        self,
        transactional_id: str = "a",
        *,
        commit: bool = True,
        pid: int | None = None,
        epoch: int | None = None,
        waits: bool = True,
    ) -> None:
        known = self._id(transactional_id, pid, epoch)
        response = self.send(
            EndTxnRequest(
                transactional_id=self._full(transactional_id) if transactional_id else "",
                producer_id=known[0],
                producer_epoch=known[1],
                committed=commit,
            ),
            waits=waits,
        )
        assert isinstance(response, EndTxnResponse)
        if not response.error_code and response.producer_id != UNKNOWN:
            self.ids[transactional_id] = response.producer_id, response.producer_epoch

    def produce(
        self,
        sequence: int,
        count: int = 1,
        transactional_id: str = "a",
        *,
        partition: int = 0,
        pid: int | None = None,
        epoch: int | None = None,
        is_transactional: bool = True,
    ) -> None:
        """Write a batch of ``count`` records to "t" in a transaction; or, without one, as an idempotent producer."""
        known = self._id(transactional_id, pid, epoch)
        batch = build_record_batch(
            [Record(None, b"v", offset=offset) for offset in range(count)],
            producer_id=known[0],
            producer_epoch=known[1],
            base_sequence=sequence,
            flags=TRANSACTIONAL if is_transactional else 0,
        )
        data = TopicProduceData(name="t", partition_data=(PartitionProduceData(index=partition, records=batch),))
        self.send(
            ProduceRequest(
                transactional_id=self._full(transactional_id) if is_transactional else None,
                acks=-1,
                timeout_ms=5_000,
                topic_data=(data,),
            )
        )

    def pass_time(self, duration_ms: int) -> None:
        self._transport.pass_time(duration_ms)
        self.steps.append(Step(f"{duration_ms} ms pass", {}))

    # Requests and responses.

    def send(self, request: Request, version: int | None = None, *, waits: bool = True) -> Any:
        """Send a request, again while its response says that the coordinator is busy; return the response."""
        api_key = type(request)._api_key
        if version is None:
            version = self.version(api_key)
        for _ in range(ATTEMPTS if waits else 1):
            self._transport.send("A", request, version)
            responses: list[tuple[str, Any]] = []
            while not responses:
                responses = self._transport.responses()
            ((_, response),) = responses
            if not COMES_LATER & set(_codes(response)):
                break
            self._transport.pass_time(PAUSE_MS)
        self.steps.append(Step(f"{APIS[api_key]} v{version}", {"A": [self._as_json(response)]}))
        return response

    def version(self, api_key: int) -> int:
        low, high = self.kafka_version.api_versions[api_key]
        return max(low, min(high, TIERS[self.tier].get(api_key, high)))

    def serves(self, api_key: int) -> bool:
        return api_key in self.kafka_version.api_versions

    def _full(self, name: str | None) -> str:
        return f"{self.name}-{name}"

    def _id(self, transactional_id: str, pid: int | None, epoch: int | None) -> tuple[int, int]:
        known = self.ids.get(transactional_id, (UNKNOWN, UNKNOWN))
        return known[0] if pid is None else pid, known[1] if epoch is None else epoch

    def _as_json(self, value: Any, name: str = "") -> Any:
        """Return a value as JSON, without empty fields and without what differs between recordings."""
        if isinstance(value, Struct):
            fields = {
                field.name: self._as_json(getattr(value, field.name), field.name) for field in fields_of(type(value))
            }
            for common in ("throttle_time_ms", "base_offset"):  # other scripts write to the topic, too
                fields.pop(common, None)
            return {name: item for name, item in fields.items() if type(item) is int or item}
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, str):
            return value.replace(self.name, "<script>")
        if isinstance(value, tuple):
            return sorted([self._as_json(item, name) for item in value], key=str)
        if name in ("producer_id", "ongoing_txn_producer_id") and value >= 0:
            return self._names.setdefault(value, f"<{len(self._names)}>")
        if name == "port":
            return 0
        if name == "transaction_start_time_ms" and value >= 0:
            return 1
        return value


def _topics(topics: Mapping[str, Sequence[int]]) -> tuple[AddPartitionsToTxnTopic, ...]:
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes)) for name, indexes in topics.items())


def _codes(value: Any) -> list[int]:
    """Return all error codes of a response."""
    if isinstance(value, Struct):
        found: list[int] = []
        for field in fields_of(type(value)):
            one = getattr(value, field.name)
            found += [one] if field.name.endswith("error_code") else _codes(one)
        return found
    return [code for item in value for code in _codes(item)] if isinstance(value, tuple) else []
