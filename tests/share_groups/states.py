"""Requests to the share coordinator (APIs 83 to 87), each a step of a transcript."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kproto.message import Request
from kproto.messages import k83_initialize_share_group_state as k83
from kproto.messages import k84_read_share_group_state as k84
from kproto.messages import k85_write_share_group_state as k85
from kproto.messages import k86_delete_share_group_state as k86
from kproto.messages import k87_read_share_group_state_summary as k87
from tests.share_groups.sharers import Sharers

Batches = Sequence[tuple[int, int, int, int]]
"""First and last offset, delivery state, delivery count."""
SENDER = "broker"


class At(NamedTuple):
    """A state that a request names."""

    partition: int | None = 0
    """None: the topic without partitions."""
    topic: str = "t"


HERE = At()


class States:
    """The states of one group; each request names one of them, or several."""

    def __init__(self, sharers: Sharers, group: str = "g") -> None:
        self.sharers = sharers
        self.group = group
        self.leader_epoch = 0
        """With which `show` reads."""

    def initialize(self, state_epoch: int, start_offset: int, *where: At) -> None:
        def part(partition: int) -> k83.PartitionData:
            return k83.PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start_offset)

        topics = self._topics(where, k83.InitializeStateData, part)
        self._send(k83.InitializeShareGroupStateRequest(group_id=self._group_id, topics=topics))

    def read(self, leader_epoch: int = -1, *where: At) -> None:
        def part(partition: int) -> k84.PartitionData:
            return k84.PartitionData(partition=partition, leader_epoch=leader_epoch)

        topics = self._topics(where, k84.ReadStateData, part)
        self._send(k84.ReadShareGroupStateRequest(group_id=self._group_id, topics=topics))

    def write(
        self,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        *where: At,
        batches: Batches = (),
        done: int = -1,
        version: int | None = None,
    ) -> None:
        def part(partition: int) -> k85.PartitionData:
            return k85.PartitionData(
                partition=partition,
                state_epoch=state_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=done,
                state_batches=tuple(
                    k85.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                    for first, last, state, count in batches
                ),
            )

        topics = self._topics(where, k85.WriteStateData, part)
        self._send(k85.WriteShareGroupStateRequest(group_id=self._group_id, topics=topics), version)

    def delete(self, *where: At) -> None:
        topics = self._topics(where, k86.DeleteStateData, lambda partition: k86.PartitionData(partition=partition))
        self._send(k86.DeleteShareGroupStateRequest(group_id=self._group_id, topics=topics))

    def summarize(self, leader_epoch: int = -1, *where: At, version: int | None = None) -> None:
        def part(partition: int) -> k87.PartitionData:
            return k87.PartitionData(partition=partition, leader_epoch=leader_epoch)

        topics = self._topics(where, k87.ReadStateSummaryData, part)
        self._send(k87.ReadShareGroupStateSummaryRequest(group_id=self._group_id, topics=topics), version)

    def show(self, *where: At) -> None:
        """Read a state and its summary."""
        self.read(self.leader_epoch, *where)
        self.summarize(self.leader_epoch, *where)

    @property
    def _group_id(self) -> str:
        return self.sharers.full(self.group) if self.group else ""

    def _topics(self, where: Iterable[At], make: Callable[..., Any], part: Callable[[int], object]) -> tuple[Any, ...]:
        """Return the topics of a request, in order; without any place, the first partition."""
        return tuple(
            make(
                topic_id=self.sharers.topic_ids[topic],
                partitions=tuple(part(one.partition) for one in found if one.partition is not None),
            )
            for topic, found in groupby(where or (HERE,), key=lambda one: one.topic)
        )

    def _send(self, request: Request, version: int | None = None) -> None:
        self.sharers.send(SENDER, request, version)
