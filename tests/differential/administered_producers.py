"""Random transactional producers whose topics are deleted and created again, beside administrators of their group.

The requests of `producers`, and: epochs and ids of two-phase commit, several transactions in one request, filters of
ListTransactions, coordinators of several keys, group ids that no group can have, and the deletion of offsets, of the
group, and of the topic while a transaction is open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kproto.declaration import ZERO_UUID, Struct
from kproto.messages.k10_find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from kproto.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.k22_init_producer_id import InitProducerIdRequest
from kproto.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kproto.messages.k66_list_transactions import ListTransactionsRequest
from tests.differential.broker_pair import ComparedBroker
from tests.differential.history import CREATE_TOPICS, create_topics
from tests.differential.producers import BATCHED_SINCE, SETTINGS, ProducerHistory
from tests.waiting import wait_until

ADMINISTERED_SETTINGS = {**SETTINGS, "delete.topic.enable": "true"}
KEY_TYPES_SINCE, SEVERAL_KEYS_SINCE = 1, 4
"""Versions of FindCoordinator."""
TWO_PHASE_SINCE = 6
"""The first version of InitProducerId with two-phase commit."""
PLAIN_IDS = ("", None)
"""Transactional ids of producers without transactions."""


class AdministeredHistory(ProducerHistory):
    def actions(self) -> dict[Callable[[], None], int]:
        return super().actions() | {
            self.init_otherwise: 6,
            self.add_several: 6,
            self.add_offsets_of_any_group: 3,
            self.filter_transactions: 6,
            self.find_coordinators: 4,
            self.replace_topic: 5,
            self.delete_offsets: 5,
            self.delete_group: 4,
            self.list_groups: 3,
        }

    def normalize(self, struct: Struct, fields: dict[str, Any]) -> None:
        super().normalize(struct, fields)
        match struct:
            case ListGroupsResponse():
                fields["groups"] = [group for group in fields["groups"] if group["group_id"] == self.group]
            case Coordinator() | FindCoordinatorResponse():
                fields["port"] = struct.port > 0

    def init_otherwise(self) -> None:
        """Ask for a producer id without a transactional id, or with what few clients send."""
        version = self.version(22)
        transactional_id = self.random.choice([*PLAIN_IDS, *self.known])
        is_new = version >= TWO_PHASE_SINCE
        enables, keeps = (is_new and self.random.random() < 0.3 for _ in range(2))
        who = self._who()
        is_known = version >= 3 and self.random.random() < 0.5
        epoch = self.random.choice([-1, 0, who.epoch, 32766, 32767]) if is_known else -1
        timeout_ms = self.mostly(60_000, 2_147_483_647, 1, percent=80)

        def build(broker: ComparedBroker) -> InitProducerIdRequest:
            return InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                producer_id=broker.value(who.producer) if is_known else -1,
                producer_epoch=epoch,
                enable2_pc=enables,
                keep_prepared_txn=keeps,
            )

        response = self.ask(build, version).real
        if not response.error_code and transactional_id in self.known:
            self.known[transactional_id] = self.known[transactional_id]._replace(
                producer=self.pair.brokers[1].producers[response.producer_id], epoch=response.producer_epoch
            )

    def add_several(self) -> None:
        """Verify the partitions of several transactions at once, as brokers do."""
        _, newest = self.versions[24]
        if newest < BATCHED_SINCE:
            return
        version = self.version(24, BATCHED_SINCE)
        asked = [(self._who(), self._added()) for _ in range(self.random.choice([1, 2]))]
        asked = list({who.transactional_id: (who, added) for who, added in asked}.values())

        def build(broker: ComparedBroker) -> AddPartitionsToTxnRequest:
            return AddPartitionsToTxnRequest(
                transactions=tuple(
                    AddPartitionsToTxnTransaction(
                        transactional_id=who.transactional_id,
                        producer_id=broker.value(who.producer),
                        producer_epoch=who.epoch,
                        verify_only=True,
                        topics=tuple(
                            AddPartitionsToTxnTopic(name=name, partitions=tuple(indexes))
                            for name, indexes in added.items()
                        ),
                    )
                    for who, added in asked
                )
            )

        self.ask(build, version)

    def add_offsets_of_any_group(self) -> None:
        version, who = self.version(25), self._who()
        group = self.random.choice(["", "other", self.group])
        self.ask(
            lambda broker: AddOffsetsToTxnRequest(
                transactional_id=who.transactional_id,
                producer_id=broker.value(who.producer),
                producer_epoch=who.epoch,
                group_id=group,
            ),
            version,
        )

    def filter_transactions(self) -> None:
        if not self.serves(66):
            return
        version = self.version(66)
        names = self.random.sample([one.producer for one in self.known.values()], self.random.choice([0, 1, 2]))
        duration_ms = self.random.choice([-1, -1, 0, 3_600_000]) if version >= 1 else -1
        patterns = [None, None, "", "a.*", f"[ab]{self.seed}", f"b{self.seed}|", "(", "x*"]
        pattern = self.random.choice(patterns) if version >= 2 else None
        states = self.random.choice([(), (), ("Ongoing",), ("ongoing", "Dead"), ("Empty", "CompleteCommit")])

        def build(broker: ComparedBroker) -> ListTransactionsRequest:
            return ListTransactionsRequest(
                state_filters=states,
                producer_id_filters=tuple(broker.value(name) for name in names),
                duration_filter=duration_ms,
                transactional_id_pattern=pattern,
            )

        self.pair.send_until_equal(0, build, version)

    def find_coordinators(self) -> None:
        version = self.version(10)
        types = [0, 1, 1, 2, 3, -1] if self.release != (3, 9) else [0, 1, 3]  # DEVIATIONS: 3.9 and share coordinators
        key_type = self.random.choice(types) if version >= KEY_TYPES_SINCE else 0
        keys = self.random.sample(["", self.group, f"a{self.seed}", "a:b:c"], self.random.choice([0, 1, 2]))
        request = (
            FindCoordinatorRequest(coordinator_keys=tuple(keys), key_type=key_type)
            if version >= SEVERAL_KEYS_SINCE
            else FindCoordinatorRequest(key=keys[0] if keys else "", key_type=key_type)
        )
        self.pair.send(0, lambda broker: request, version)

    def replace_topic(self) -> None:
        """Delete the topic, and create it again."""
        version = self.version(20)
        request = (
            DeleteTopicsRequest(topics=(DeleteTopicState(name=self.topic, topic_id=ZERO_UUID),), timeout_ms=10_000)
            if version >= 6
            else DeleteTopicsRequest(topic_names=(self.topic,), timeout_ms=10_000)
        )
        self.pair.send(0, lambda broker: request, version)
        for broker in self.pair.brokers:
            wait_until(lambda broker=broker: self._is_created_again(broker), "the topic again")  # type: ignore[misc]
            create_topics(broker, {self.topic: (2, {})}, self.versions)
        self.next_sequences.clear()
        self.session = None

    def _is_created_again(self, broker: ComparedBroker) -> bool:
        """Return whether the topic was created; brokers with ZooKeeper delete it some time after the response."""
        topic = CreatableTopic(name=self.topic, num_partitions=2, replication_factor=1, assignments=(), configs=())
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)
        created: Any = broker.connection(0).ask(request, self.versions[CREATE_TOPICS][1])
        return not created.topics[0].error_code

    def delete_offsets(self) -> None:
        if not self.serves(47):
            return
        partitions = tuple(OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1))
        topic = OffsetDeleteRequestTopic(name=self.mostly(self.topic, "nope", percent=90), partitions=partitions)
        request = OffsetDeleteRequest(group_id=self.group, topics=(topic,))
        self.pair.send(0, lambda broker: request, 0)

    def delete_group(self) -> None:
        if self.serves(42):
            request = DeleteGroupsRequest(groups_names=(self.group,))
            self.pair.send(0, lambda broker: request, self.version(42))

    def list_groups(self) -> None:
        request = ListGroupsRequest()
        self.pair.send_until_equal(0, lambda broker: request, self.version(16))
