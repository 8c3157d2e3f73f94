"""What brokers, ours and real ones, are given to keep: commits, groups and deletions, sent in kproto's own codec."""

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
from tests.interop.asked import Committed, Offsets
from tests.network.raw_client import RawClient
from tests.oracle.releases import number
from tests.waiting import wait_until

PARTITIONS = {"t": 3, "wide": 40}
SESSION_TIMEOUT_MS = 300_000
"""Nobody's session ends while a test runs."""
TRANSACTIONAL_ID = "tx"
TRANSACTION = 1
"""FindCoordinator's key type."""


class Filler:
    """One client of one broker. `expected` is what that broker has been told, and has to serve from then on."""

    def __init__(self, client: RawClient, release: str, expected: dict[str, dict[tuple[str, int], Committed]]) -> None:
        self._client = client
        self._release = number(release)
        self.expected = expected

    def create_topics(self) -> None:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=count, replication_factor=1, assignments=(), configs=())
            for name, count in PARTITIONS.items()
        )
        response = self._client.ask(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 2)
        assert [topic.error_code for topic in response.topics] == [0] * len(PARTITIONS), response
        self._until_well(FindCoordinatorRequest(key="g"), 1)
        self._until_well(_commit("first", {("t", 0): Committed(0)}), 3)
        self._until_well(_commit("first", {("wide", PARTITIONS["wide"] - 1): Committed(0)}), 3)
        self.expected["first"] = {("t", 0): Committed(0), ("wide", PARTITIONS["wide"] - 1): Committed(0)}

    def commit(self, group_id: str, offsets: Offsets, **member: Any) -> None:
        """Commit; leader epochs are kept by releases that know them."""
        self._until_well(_commit(group_id, offsets, **member), 6 if self._release >= (2, 1) else 3)
        kept = self.expected.setdefault(group_id, {})
        for place, committed in offsets.items():
            kept[place] = committed if self._release >= (2, 1) else committed._replace(leader_epoch=-1)

    def delete_group(self, group_id: str) -> None:
        response = self._client.ask(DeleteGroupsRequest(groups_names=(group_id,)), 0)
        assert [result.error_code for result in response.results] == [0], response
        self.expected[group_id] = {}

    def delete_offset(self, group_id: str, topic: str, partition: int) -> None:
        asked = OffsetDeleteRequestTopic(
            name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=partition),)
        )
        response = self._client.ask(OffsetDeleteRequest(group_id=group_id, topics=(asked,)), 0)
        assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, 0), response
        del self.expected[group_id][topic, partition]

    def join(self, group_id: str) -> dict[str, Any]:
        """Have one consumer in the group, with partition 0 of "t"; return how a commit names it."""
        subscription = encode_member_data(ConsumerProtocolSubscription(topics=("t",), user_data=b""), 0)
        joined = self._well(
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
        self._well(
            SyncGroupRequest(
                group_id=group_id, generation_id=generation, member_id=joined.member_id, assignments=(own,)
            ),
            1,
        )
        self.expected.setdefault(group_id, {})
        return {"generation_id_or_member_epoch": generation, "member_id": joined.member_id}

    def leave(self, group_id: str, member_id: str) -> None:
        self._well(LeaveGroupRequest(group_id=group_id, member_id=member_id), 1)

    def commit_in_transaction(self, group_id: str, offsets: Offsets, *, end: bool | None) -> None:
        """Commit, then end the transaction (True: COMMIT, False: ABORT), or leave it open (None)."""
        asked = FindCoordinatorRequest(key=TRANSACTIONAL_ID, key_type=TRANSACTION)
        self._until_well(asked, 1)
        init = InitProducerIdRequest(transactional_id=TRANSACTIONAL_ID, transaction_timeout_ms=60_000)
        producer = self._until_well(init, 0)
        identity = {
            "transactional_id": TRANSACTIONAL_ID,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }
        self._until_well(AddOffsetsToTxnRequest(group_id=group_id, **identity), 0)
        response = self._client.ask(TxnOffsetCommitRequest(group_id=group_id, topics=_txn(offsets), **identity), 0)
        assert {p.error_code for topic in response.topics for p in topic.partitions} == {0}, response
        kept = self.expected.setdefault(group_id, {})
        if end is not None:
            self._until_well(EndTxnRequest(committed=end, **identity), 0)
        if end:
            kept.update(offsets)

    def _well(self, request: Request, version: int) -> Any:
        response = self._client.ask(request, version)
        assert _errors(response) == {0}, response
        return response

    def _until_well(self, request: Request, version: int) -> Any:
        """Ask until there is no error: real brokers take a while to make topics and to know them everywhere."""
        answers: list[Any] = []

        def is_well() -> bool:
            answers.append(self._client.ask(request, version))
            return _errors(answers[-1]) == {0}

        wait_until(is_well, f"an answer without an error to {request}")
        return answers[-1]


def fill(filler: Filler) -> None:
    """Offsets of each kind: overwritten, with metadata, many in one batch, deleted; and groups of each kind."""
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
    """A group with a member, and one whose member left."""
    member = filler.join("stable")
    filler.commit("stable", {("t", 0): Committed(11, 0, "by a member")}, **member)
    member = filler.join("left")
    filler.commit("left", {("t", 0): Committed(12, 0, "before it left")}, **member)
    filler.leave("left", member["member_id"])


def fill_transactions(filler: Filler) -> None:
    """An offset of a transaction that committed, and one of one that did not, over others."""
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
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_metadata=committed.metadata,
                ),
            ),
        )
        for (topic, partition), committed in offsets.items()
    )


def _errors(response: Any) -> set[int]:
    """The codes of a response, wherever they stand."""
    if hasattr(response, "error_code"):
        return {int(response.error_code)}
    return {int(partition.error_code) for topic in response.topics for partition in topic.partitions}
