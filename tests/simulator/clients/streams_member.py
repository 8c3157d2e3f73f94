"""A member of a streams group (KIP-1071): as one of a consumer group, with the tasks of a topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kproto.messages.k88_streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from tests.simulator.broker import REBALANCE_TIMEOUT_MS, TOPIC
from tests.simulator.clients.client import Steps
from tests.simulator.clients.consumer_member import JOIN, ConsumerMember

if TYPE_CHECKING:
    from kproto.message import Request

SUBTOPOLOGY = "0"
CHANGELOG = "a-log"
Tasks = tuple[TaskIds, ...]


def topology(*, is_stateful: bool) -> Topology:
    """Return a topology that reads the topic of all clients; with state, it has standby tasks."""
    changelog = TopicInfo(name=CHANGELOG, partitions=0, replication_factor=1, topic_configs=())
    return Topology(
        epoch=0,
        subtopologies=(
            Subtopology(
                subtopology_id=SUBTOPOLOGY,
                source_topics=(TOPIC,),
                source_topic_regex=(),
                state_changelog_topics=(changelog,) if is_stateful else (),
                repartition_sink_topics=(),
                repartition_source_topics=(),
                copartition_groups=(),
            ),
        ),
    )


class StreamsMember(ConsumerMember):
    """A member with a process of its own. Its partitions are its active tasks.

    It joins again when a response is lost: brokers accept the epoch before it, and do not repeat the tasks that it had.
    """

    def main(self) -> Steps[None]:
        self.standby: Tasks = ()
        self.warmup: Tasks = ()
        yield from super().main()

    def _heartbeat_request(self) -> Request:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            endpoint_information_epoch=0,
            instance_id=self.instance,
        )
        if self.epoch == JOIN:
            self.standby = self.warmup = ()
            request = request.replace(
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
                topology=topology(is_stateful=bool(self.line.number("stateful"))),
                process_id=self.member_id,
                client_tags=(),
            )
        if not self.says_all and self.epoch != JOIN:
            return request
        active = (TaskIds(subtopology_id=SUBTOPOLOGY, partitions=tuple(sorted(self.owned))),) if self.owned else ()
        return request.replace(active_tasks=active, standby_tasks=self.standby, warmup_tasks=self.warmup)

    def _assigned(self, response: Any) -> frozenset[int] | None:
        if response.active_tasks is None:
            return None
        if (response.standby_tasks, response.warmup_tasks) != (self.standby, self.warmup):
            self.standby, self.warmup = response.standby_tasks, response.warmup_tasks
            self.says_all = True
        return frozenset(index for tasks in response.active_tasks for index in tasks.partitions)

    def _note_lost_response(self) -> None:
        self.epoch, self.owned = JOIN, frozenset()

    def _leave_request(self, epoch: int) -> Request:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=epoch,
            endpoint_information_epoch=0,
            instance_id=self.instance,
        )
