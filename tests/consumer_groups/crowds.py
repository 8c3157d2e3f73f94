"""Random scripts of all that may meet in one group, with topics of its own.

Consumer and classic members, transactional and other commits, heartbeats of other kinds of groups, and admin clients;
meanwhile topics are created, grown, deleted and created again, configs of the group change, and time passes.
"""

from __future__ import annotations

import base64
import os
import uuid
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.message import Request
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k11_join_group import JoinGroupResponse
from kproto.messages.k15_describe_groups import DescribeGroupsRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k26_end_txn import EndTxnRequest
from kproto.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.k65_describe_transactions import DescribeTransactionsRequest
from kproto.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from kproto.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from kproto.messages.k77_share_group_describe import ShareGroupDescribeRequest
from kproto.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from tests.consumer_groups.members import ASSIGNED, REBALANCE_MS, Conversation, Member
from tests.membership.in_memory_transport import InMemoryTransport
from tests.membership.members import UUID, Step, Transport

CONSUMERS, CLASSIC = ("m0", "m1", "m2"), ("c0", "c1")
TOPICS = ("a", "b", "missing")
NO_ID = bytes(15) + b"\x07"
BUSY = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
PROPAGATION_MS = 1_500
"""How long a change of topics or configs takes to reach the coordinator of a busy broker."""
WRITE_MS = 30
"""How long the group coordinator of a real broker keeps a record before it writes it, and then some (DEVIATIONS)."""
UUID_LENGTH = 22
"""Of the text of a UUID as Kafka writes it."""
BUSY_ATTEMPTS = 200
STEPS = 70
GROUP_CONFIGS = {
    "consumer.session.timeout.ms": ("2000", "3000", "20000"),
    "consumer.heartbeat.interval.ms": ("600", "1000", "900"),
}
GROUP, SET, DELETE = 32, 0, 1
TRANSACTION = 1
"""The key type of transactional ids in FindCoordinator."""


def _uuid_of(member_id: str) -> list[bytes]:
    """Return the UUID of a generated member id: behind the client's, or, in a consumer group, in base64."""
    found = UUID.search(member_id)
    if found is not None:
        return [uuid.UUID(found.group()).bytes]
    return [base64.urlsafe_b64decode(f"{member_id}==")] if len(member_id) == UUID_LENGTH else []


class Ids(NamedTuple):
    """The ids that a broker gave, in order: assignments depend on them."""

    topics: list[bytes]
    members: list[bytes]
    """The UUIDs in the ids of classic members."""

    @classmethod
    def unknown(cls) -> Ids:
        return cls([], [])


class Crowd(Conversation):
    """The members and admin clients of one group; names of topics begin with the group id.

    Args:
        ids: filled by a run against a real broker, and given by kproto in the next run.
    """

    def __init__(self, transport: Transport, group_id: str, release: str, ids: Ids, seed: int) -> None:
        super().__init__(transport, group_id, release=release)
        self.random = Random(seed)  # noqa: S311 - a seed repeats the requests
        self._created = ids.topics
        self._created_count = 0
        self._member_ids = ids.members
        if isinstance(transport, InMemoryTransport):
            given, coordinator = iter(ids.members), transport.state.coordinator
            coordinator._random_bytes = lambda count: next(given, None) or os.urandom(count)
        else:
            for found in ids:
                found.clear()
        self.partition_counts: dict[str, int] = {}
        """Of the topics that exist."""
        self.instances = {name: self.random.choice((None, None, None, "i", "j")) for name in CONSUMERS + CLASSIC}
        self.assignor = self.random.choice(("uniform", "range"))
        """Of all members: while as many prefer another one, real brokers of 4.4 raise the epoch (DEVIATIONS)."""
        self.regex_pending = False
        self.producer = (-1, -1)
        self.is_new_client = self.random.random() < 0.5
        """Whether the producer raises its epoch with each transaction (KIP-890)."""
        self.in_transaction = False

    def run(self) -> None:
        self._ask_until(FindCoordinatorRequest(key=self.full("p"), key_type=TRANSACTION), 1)
        self.create("a")
        self.create("b")
        actions: dict[Callable[[], None], int] = {
            self.do_join: 8,
            self.do_beat: 20,
            self.do_stale: 2,
            self.do_topics: 3,
            self.do_expression: 2,
            self.do_leave: 3,
            self.do_join_classic: 6,
            self.do_sync: 5,
            self.do_beat_classic: 5,
            self.do_leave_classic: 2,
            self.do_commit: 7,
            self.do_fetch: 5,
            self.do_transaction: 6,
            self.do_change_topics: 4,
            self.do_configure: 2,
            self.do_describe: 6,
            self.do_list: 3,
            self.do_delete: 2,
            self.do_delete_offsets: 3,
            self.do_other_kind: 2,
            self.do_wait: 4,
        }
        for _ in range(STEPS):
            [action] = self.random.choices(list(actions), list(actions.values()))
            action()
            self.pass_time(WRITE_MS)
            if self.regex_pending:
                self.pass_time(100)

    def note(self, action: str, value: int) -> None:
        self.steps.append(Step(action, {"": [value]}))

    def _learn_id(self, name: str, response: Any) -> None:
        is_new = getattr(response, "member_id", None) not in self._generated
        super()._learn_id(name, response)
        is_generated = is_new and isinstance(response, JoinGroupResponse) and response.member_id
        if is_generated and not isinstance(self._transport, InMemoryTransport):
            self._member_ids += _uuid_of(response.member_id)
        if getattr(response, "error_code", 0) == ErrorCode.UNKNOWN_MEMBER_ID and name in CLASSIC:
            self.members.pop(name, None)
        if isinstance(response, JoinGroupResponse) and not response.error_code:
            assigned = self.members.get(name, Member("")).assigned
            self.members[name] = Member(response.member_id, response.generation_id, assigned)

    # Topics: no steps.

    def full(self, topic: str) -> str:
        return f"{self.group_id}-{topic}"

    def _ask(self, request: Request, version: int) -> Any:
        self._transport.send("setup", request, version)
        while True:
            found = self._transport.responses()
            self._kept += [one for one in found if one[0] != "setup"]
            for name, response in found:
                if name == "setup":
                    return response

    def create(self, topic: str) -> None:
        count = self.random.choice((1, 2, 3, 6))
        creatable = CreatableTopic(
            name=self.full(topic), num_partitions=count, replication_factor=1, assignments=(), configs=()
        )
        request = CreateTopicsRequest(topics=(creatable,), timeout_ms=10_000)
        if isinstance(self._transport, InMemoryTransport):
            cluster = self._transport.state.cluster
            made, cluster.random_bytes = cluster.random_bytes, self._given_id
            created = self._ask(request, 7)
            cluster.random_bytes = made
        else:
            created = self._ask(request, 7)
            self._created.append(created.topics[0].topic_id)
        assert not created.topics[0].error_code, created
        self._created_count += 1
        if topic in self.topic_ids:
            self.topic_ids[f"{topic}#{self._created_count}"] = self.topic_ids[topic]
        self.topic_ids[topic] = created.topics[0].topic_id
        self.partition_counts[topic] = count
        self.pass_time(PROPAGATION_MS)

    def _given_id(self, count: int) -> bytes:
        """Return an id of the real broker; after a difference, kproto may create more topics."""
        known = count == 16 and self._created_count < len(self._created)
        return self._created[self._created_count] if known else bytes([self._created_count] * count)

    def do_change_topics(self) -> None:
        topic = self.random.choice("ab")
        count = self.partition_counts.get(topic)
        if count is None:
            self.create(topic)
        elif self.random.random() < 0.5:
            self.partition_counts[topic] = count + 1
            new = CreatePartitionsTopic(name=self.full(topic), count=count + 1, assignments=None)
            self._ask(CreatePartitionsRequest(topics=(new,), timeout_ms=5_000, validate_only=False), 3)
        else:
            del self.partition_counts[topic]
            self._ask(DeleteTopicsRequest(topic_names=(self.full(topic),), timeout_ms=5_000), 4)
        self.pass_time(PROPAGATION_MS)

    # Consumer members.

    def _one_of(self, names: Sequence[str]) -> str:
        """Return a member, mostly one that has joined."""
        joined = [name for name in names if name in self.members and self.members[name].epoch > 0]
        return self.random.choice(joined if joined and self.random.random() < 0.85 else names)

    def _given(self, name: str) -> dict[str, Any]:
        return {} if self.instances[name] is None else {"instance_id": self.instances[name]}

    def _subscription(self) -> tuple[str, ...]:
        return tuple(map(self.full, sorted(self.random.sample(TOPICS, self.random.choice((1, 1, 2, 3))))))

    def do_join(self) -> None:
        name = self.random.choice(CONSUMERS)
        self.join(
            name,
            self._subscription(),
            server_assignor=self.random.choice((None, None, self.assignor)),
            rack_id=self.random.choice((None, None, "r")),
            rebalance_timeout_ms=self.random.choice((REBALANCE_MS, REBALANCE_MS, 2_000)),
            **self._given(name),
        )

    def do_beat(self) -> None:
        name = self._one_of(CONSUMERS)
        self.beat(name, owned=self.random.choice((ASSIGNED, ASSIGNED, ASSIGNED, None)), **self._given(name))

    def do_stale(self) -> None:
        name = self._one_of(CONSUMERS)
        known = self.members.get(name)
        epoch = 1 if known is None else max(1, known.epoch + self.random.choice((-2, -1, 1)))
        self.beat(name, epoch, self.random.choice((ASSIGNED, {}, None)), **self._given(name))

    def do_topics(self) -> None:
        name = self._one_of(CONSUMERS)
        self.beat(name, subscribed_topic_names=self._subscription(), **self._given(name))

    def do_expression(self) -> None:
        name = self.random.choice(CONSUMERS)
        text = self.random.choice((f"{self.group_id}-(a|b)", f"{self.group_id}-[b]", "", "none", "("))
        if self.random.random() < 0.5:
            self.join(name, self.random.choice((None, (self.full("a"),))), subscribed_topic_regex=text)
        else:
            self.beat(name, subscribed_topic_regex=text, **self._given(name))
        self.pass_time(1_000)
        self.regex_pending = True

    def do_leave(self) -> None:
        name = self._one_of(CONSUMERS)
        self.leave(name, self.random.choice((-1, -1, -2)), **self._given(name))

    # Classic members.

    def do_join_classic(self) -> None:
        name = self.random.choice(CLASSIC)
        if self._is_waiting(name):
            return
        self.join_classic(
            name,
            self._subscription(),
            instance=self.instances[name],
            session_ms=self.random.choice((30_000, 30_000, 2_500)),
            protocol_type=self.random.choice(("consumer",) * 9 + ("connect",)),
        )

    def do_sync(self) -> None:
        name = self._one_of(CLASSIC)
        if self._is_waiting(name):
            return
        assigns = {self.full("a"): (0,)} if self.random.random() < 0.7 else None
        self.sync(name, assigns=assigns)

    def do_beat_classic(self) -> None:
        self.beat_classic(self._one_of(CLASSIC))

    def do_leave_classic(self) -> None:
        name = self._one_of(CLASSIC)
        if not self._is_waiting(name):
            self.leave_classic(name, self.instances[name] if self.random.random() < 0.5 else None)
            self.members.pop(name, None)  # an unknown id would delete an empty consumer group (DEVIATIONS)

    def _is_waiting(self, name: str) -> bool:
        return name in self._transport.waiting

    # Offsets.

    def _who(self) -> dict[str, Any]:
        """Return the member, generation and instance id of a commit."""
        if self.random.random() < 0.3:
            return {"member_id": "", "generation_id_or_member_epoch": self.random.choice((-1, -1, -1, 0, 5))}
        name = self.random.choice(CONSUMERS + CLASSIC)
        known = self.members.get(name, Member(name))
        found: dict[str, Any] = {
            "member_id": self.random.choice((known.member_id, known.member_id, known.member_id, "ghost")),
            "generation_id_or_member_epoch": self.random.choice(
                (known.epoch,) * 5 + (known.epoch - 1, known.epoch + 1)
            ),
        }
        if self.random.random() < 0.3:
            found["group_instance_id"] = self.random.choice((self.instances[name], "i", "k"))
        return found

    def _partitions(self) -> list[tuple[str, list[int]]]:
        names = self.random.sample((*TOPICS, ""), self.random.choice((1, 1, 1, 2)))
        return [(name, sorted(self.random.sample((0, 0, 0, 1, 2, 7), self.random.choice((1, 2))))) for name in names]

    def _id(self, topic: str) -> bytes:
        old = [name for name in self.topic_ids if name.startswith(f"{topic}#")]
        if old and self.random.random() < 0.3:
            return self.topic_ids[self.random.choice(old)]
        return self.topic_ids.get(topic, NO_ID)

    def _version(self, api_key: int, lowest: int) -> int:
        _, high = self._kafka_version.api_versions[api_key]
        return self.random.randint(min(lowest, high), high)

    def do_commit(self) -> None:
        version, who = self._version(8, 7), self._who()
        metadata = self.random.choice(("", "m", "m" * 5000)) if self.random.random() < 0.3 else ""
        topics = tuple(
            OffsetCommitRequestTopic(
                name=self.full(topic) if topic else "",
                topic_id=self._id(topic),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=self.random.randint(0, 9), committed_metadata=metadata
                    )
                    for index in dict.fromkeys(indexes)
                ),
            )
            for topic, indexes in self._partitions()
        )
        self.send("committer", OffsetCommitRequest(group_id=self.group_id, topics=topics, **who), version)

    def do_fetch(self) -> None:
        version = self._version(9, 8)
        who = self.random.choice(({}, {}, self._who()))
        member = (
            {"member_id": who["member_id"], "member_epoch": who["generation_id_or_member_epoch"]}
            if who and version >= 9
            else {}
        )
        topics = None
        if self.random.random() < 0.5:
            topics = tuple(
                OffsetFetchRequestTopics(
                    name=self.full(topic) if topic else "",
                    topic_id=self._id(topic),
                    partition_indexes=tuple(dict.fromkeys(indexes)),
                )
                for topic, indexes in self._partitions()
            )
        group = OffsetFetchRequestGroup(group_id=self.group_id, topics=topics, **member)
        request = OffsetFetchRequest(groups=(group,), require_stable=self.random.random() < 0.5)
        self.send("fetcher", request, version)

    def do_delete_offsets(self) -> None:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=self.full(topic) if topic else "",
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=i) for i in dict.fromkeys(indexes)),
            )
            for topic, indexes in self._partitions()
        )
        self.send("admin", OffsetDeleteRequest(group_id=self.group_id, topics=topics), 0)

    # A transactional producer: what the broker does a moment later has happened before the next step.

    def do_transaction(self) -> None:
        transactional_id = self.full("p")
        if self.producer[0] < 0 or (not self.in_transaction and self.random.random() < 0.1):
            request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
            response = self._ask_until(request, 4)
            self.producer = response.producer_id, response.producer_epoch
            return
        producer_id, epoch = self.producer
        if self.in_transaction and self.random.random() < 0.4:
            end = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=self.random.random() < 0.6,
            )
            response = self._ask_until(end, 5 if self.is_new_client else 4)
            self.note("EndTxn", response.error_code)
            if self.is_new_client and not response.error_code:
                self.producer = response.producer_id, response.producer_epoch
            self.in_transaction = False
            described = DescribeTransactionsRequest(transactional_ids=(transactional_id,))
            for _ in range(BUSY_ATTEMPTS):
                if not self._ask(described, 0).transaction_states[0].transaction_state.startswith("Prepare"):
                    break
                self.pass_time(20)
            return
        if not self.is_new_client:
            add = AddOffsetsToTxnRequest(
                transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=self.group_id
            )
            self.note("AddOffsetsToTxn", self._ask_until(add, 3).error_code)
        self.in_transaction = True
        version = self._version(28, 5) if self.is_new_client else self.random.choice((3, 4))
        commit = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=tuple(
                TxnOffsetCommitRequestTopic(
                    name=self.full(topic) if topic else "",
                    topic_id=self._id(topic),
                    partitions=tuple(
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=self.random.randint(10, 19), committed_metadata=""
                        )
                        for index in dict.fromkeys(indexes)
                    ),
                )
                for topic, indexes in self._partitions()
            ),
            **self._who(),
        )
        self.send("producer", commit, version)

    def _ask_until(self, request: Request, version: int) -> Any:
        """Send a request, again while the coordinator is busy."""
        for _ in range(BUSY_ATTEMPTS):
            response = self._ask(request, version)
            if response.error_code not in BUSY:
                break
            self.pass_time(20)
        return response

    # Admin clients.

    def do_configure(self) -> None:
        name = self.random.choice(list(GROUP_CONFIGS))
        value = self.random.choice((None, *GROUP_CONFIGS[name]))
        change = AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=self.group_id, configs=(change,))
        self.send("admin", IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
        self.pass_time(PROPAGATION_MS)

    def do_describe(self) -> None:
        groups = (self.group_id,)
        requests: dict[int, tuple[Request, int]] = {
            15: (DescribeGroupsRequest(groups=groups), self._version(15, 5)),
            69: (ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 1),
            77: (ShareGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 1),
            89: (StreamsGroupDescribeRequest(group_ids=groups, include_authorized_operations=False), 0),
        }
        served = [key for key, (_, version) in requests.items() if self.serves(key, version)]
        request, version = requests[self.random.choice([69, 69, 15, *served])]
        self.send("admin", request, version)

    def do_list(self) -> None:
        states = self.random.choice(
            ((), (), ("Stable",), ("stable", "EMPTY"), ("Assigning", "Reconciling"), ("Empty",), ("Dead", "no state"))
        )
        types = self.random.choice(((), (), ("consumer",), ("Classic", "share"), ("STREAMS",), ("none",)))
        self.send("admin", ListGroupsRequest(states_filter=states, types_filter=types), 5)

    def do_delete(self) -> None:
        self.send("admin", DeleteGroupsRequest(groups_names=(self.group_id,)), 2)

    def do_other_kind(self) -> None:
        """Join and leave as a member of a share group or of a streams group."""
        kinds = [kind for kind, key in (("share", 76), ("streams", 88)) if self._serves_any(key)]
        if not kinds:
            return
        if self.random.choice(kinds) == "share":
            for epoch, topics in ((0, self._subscription()), (-1, None)):
                request: Request = ShareGroupHeartbeatRequest(
                    group_id=self.group_id, member_id="s", member_epoch=epoch, subscribed_topic_names=topics
                )
                self.send("sharer", request, 1)
                self.pass_time(300)
            return
        source = Subtopology(
            subtopology_id="0",
            source_topics=(self.full("a"),),
            source_topic_regex=(),
            state_changelog_topics=(),
            repartition_sink_topics=(),
            repartition_source_topics=(),
            copartition_groups=(),
        )
        for epoch in (0, -1):
            is_first = epoch == 0
            request = StreamsGroupHeartbeatRequest(
                group_id=self.group_id,
                member_id="z",
                member_epoch=epoch,
                endpoint_information_epoch=0,
                rebalance_timeout_ms=REBALANCE_MS if is_first else -1,
                topology=Topology(epoch=0, subtopologies=(source,)) if is_first else None,
                active_tasks=() if is_first else None,
                standby_tasks=() if is_first else None,
                warmup_tasks=() if is_first else None,
                process_id="p" if is_first else None,
                client_tags=() if is_first else None,
            )
            self.send("streamer", request, 0)
            self.pass_time(300)

    def _serves_any(self, api_key: int) -> bool:
        return api_key in self._kafka_version.api_versions

    def do_wait(self) -> None:
        self.pass_time(self.random.choice((300, 1_200, 1_200, 3_200)))
