"""Fill a broker, kproto or a real one, with commits, groups and deletions over a socket."""

from __future__ import annotations

from typing import Any

from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.k13_leave_group import LeaveGroupRequest
from kproto.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.records.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    encode_member_data,
)
from tests.interop.served import Committed, Offsets, committed_offsets
from tests.network.raw_client import RawClient
from tests.oracle.releases import number
from tests.waiting import wait_until

PARTITIONS = {"t": 3, "wide": 40}
SESSION_TIMEOUT_MS = 300_000
"""No session times out while a test runs."""
TRANSACTIONAL_ID = "tx"
TRANSACTION = 1
"""FindCoordinator's key type."""


class Filler:
    """A client that fills one broker. ``expected`` has the offsets that the broker must serve after that."""

    def __init__(self, client: RawClient, release: str, expected: dict[str, dict[tuple[str, int], Committed]]) -> None:
        self._client = client
        self._release_name = release
        self._release = number(release)
        self.expected = expected

    def create_topics(self) -> None:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
            for name, count in PARTITIONS.items()
        )
        response = self._client.ask(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 2)
        assert [topic.error_code for topic in response.topics] == [0] * len(PARTITIONS), response
        self._until_success(FindCoordinatorRequest(key="g"), 1)
        self._until_success(_commit("first", {("t", 0): Committed(0)}), 3)
        self._until_success(_commit("first", {("wide", PARTITIONS["wide"] - 1): Committed(0)}), 3)
        self.expected["first"] = {("t", 0): Committed(0), ("wide", PARTITIONS["wide"] - 1): Committed(0)}

    def commit(self, group_id: str, offsets: Offsets, **member: Any) -> None:
        """Commit; releases since 2.1 store leader epochs."""
        self._until_success(_commit(group_id, offsets, **member), 6 if self._release >= (2, 1) else 3)
        stored = self.expected.setdefault(group_id, {})
        for partition, committed in offsets.items():
            stored[partition] = committed if self._release >= (2, 1) else committed._replace(leader_epoch=-1)

    def delete_group(self, group_id: str) -> None:
        response = self._client.ask(DeleteGroupsRequest(groups_names=(group_id,)), 0)
        assert [result.error_code for result in response.results] == [0], response
        self.expected[group_id] = {}

    def delete_offset(self, group_id: str, topic: str, partition: int) -> None:
        topic_request = OffsetDeleteRequestTopic(
            name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=partition),)
        )
        response = self._client.ask(OffsetDeleteRequest(group_id=group_id, topics=(topic_request,)), 0)
        assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, 0), response
        del self.expected[group_id][topic, partition]

    def join(self, group_id: str) -> dict[str, Any]:
        """Add one consumer to the group, with partition 0 of "t"; return the fields of its commits that identify it."""
        subscription = encode_member_data(ConsumerProtocolSubscription(topics=("t",), user_data=b""), 0)
        joined = self._succeed(
            JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=SESSION_TIMEOUT_MS,
                member_id="",
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription),),
            ),
            2,
        )
        owned = (TopicPartition(topic="t", partitions=(0,)),)
        assignment = encode_member_data(ConsumerProtocolAssignment(assigned_partitions=owned, user_data=b""), 0)
        own = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
        generation = joined.generation_id
        self._succeed(
            SyncGroupRequest(
                group_id=group_id, generation_id=generation, member_id=joined.member_id, assignments=(own,)
            ),
            1,
        )
        self.expected.setdefault(group_id, {})
        return {"generation_id_or_member_epoch": generation, "member_id": joined.member_id}

    def leave(self, group_id: str, member_id: str) -> None:
        self._succeed(LeaveGroupRequest(group_id=group_id, member_id=member_id), 1)

    def commit_in_transaction(self, group_id: str, offsets: Offsets, *, end: bool | None) -> None:
        """Commit, then end the transaction: True commits, False aborts, None leaves it open."""
        self._until_success(FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=TRANSACTION), 1)
        init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
        producer = self._until_success(init, 0)
        identity = {
            "transactional_id": TRANSACTIONAL_ID,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        self._until_success(AddOffsetsToTxnRequest(group_id=group_id, **identity), 0)
        response = self._client.ask(TxnOffsetCommitRequest(group_id=group_id, topics=_txn(offsets), **identity), 0)
        assert {p.error_code for topic in response.topics for p in topic.partitions} == {0}, response
        stored = self.expected.setdefault(group_id, {})
        if end is not None:
            self._until_success(EndTxnRequest(committed=end, **identity), 0)
        if end:
            stored.update(offsets)
            # Real brokers apply the offsets a moment after the response, and with them those that are pending by then:
            # offsets of the producer's next transaction would be committed by this one.
            wait_until(lambda: self._serves(group_id), f"the committed offsets of {group_id}")

    def _serves(self, group_id: str) -> bool:
        return committed_offsets(self._client, self._release_name, group_id) == self.expected[group_id]

    def _succeed(self, request: Request, version: int) -> Any:
        response = self._client.ask(request, version)
        assert _errors(response) == {0}, response
        return response

    def _until_success(self, request: Request, version: int) -> Any:
        """Send a request until it succeeds: real brokers need a while to create topics and to propagate them."""
        responses: list[Any] = []

        def has_succeeded() -> bool:
            responses.append(self._client.ask(request, version))
            return _errors(responses[-1]) == {0}

        wait_until(has_succeeded, f"a response without an error to {request}")
        return responses[-1]


def fill(filler: Filler) -> None:
    """Commit offsets that are overwritten, have metadata, are many in one batch, or are deleted."""
    filler.create_topics()
    for number_of_group in range(12):
        group_id = f"simple-{number_of_group}"
        first = {("t", p): Committed(100 * number_of_group + p, p - 1, f"first {p}") for p in range(3)}
        filler.commit(group_id, first)
        filler.commit(group_id, {("t", 1): Committed(2**62 + number_of_group, 7, "grüße, 二回目")})
    filler.commit("wide", {("wide", p): Committed(p, 0, "m" * (p % 90)) for p in range(PARTITIONS["wide"])})
    filler.commit("deleted", {("t", 0): Committed(1)})
    filler.delete_group("deleted")
    filler.commit("revived", {("t", 0): Committed(1), ("t", 1): Committed(2)})
    filler.delete_group("revived")
    filler.commit("revived", {("t", 1): Committed(3)})


def fill_members(filler: Filler) -> None:
    """Create a group with a member, and one whose member left."""
    member = filler.join("stable")
    filler.commit("stable", {("t", 0): Committed(11, 0, "by a member")}, **member)
    member = filler.join("left")
    filler.commit("left", {("t", 0): Committed(12, 0, "before it left")}, **member)
    filler.leave("left", member["member_id"])


def fill_transactions(filler: Filler) -> None:
    """Overwrite offsets in a transaction that commits, and in one that aborts."""
    filler.commit("exactly-once", {("t", 0): Committed(1), ("t", 1): Committed(1)})
    filler.commit_in_transaction("exactly-once", {("t", 0): Committed(2)}, end=True)
    filler.commit_in_transaction("exactly-once", {("t", 1): Committed(3)}, end=False)


def _commit(group_id: str, offsets: Offsets, **member: Any) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), committed in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=tuple(OffsetCommitRequestTopic(name=name, partitions=tuple(p)) for name, p in topics.items()),
        **member,
    )


def _txn(offsets: Offsets) -> tuple[TxnOffsetCommitRequestTopic, ...]:
    return tuple(
        TxnOffsetCommitRequestTopic(
            name=topic,
            partitions=(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=committed.offset, committed_metadata=committed.metadata
                ),
            ),
        )
        for (topic, partition), committed in offsets.items()
    )


def _errors(response: Any) -> set[int]:
    """Return the error codes of a response, at the top or in its partitions."""
    if hasattr(response, "error_code"):
        return {int(response.error_code)}
    return {int(partition.error_code) for topic in response.topics for partition in topic.partitions}
