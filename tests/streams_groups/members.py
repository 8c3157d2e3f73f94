"""Members of a streams group with connections of their own, and the transcript of the responses that they get.

A script makes members send requests (`scripts`), to a real broker or to kproto's connections without sockets. Group,
topics and internal topics of a script begin with its name, which a transcript leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from kproto.codes import ErrorCode
from kproto.declaration import Struct, fields_of
from kproto.message import Request
from kproto.messages import APIS
from kproto.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from kproto.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kproto.messages.k10_find_coordinator import FindCoordinatorRequest
from kproto.messages.k16_list_groups import ListGroupsRequest
from kproto.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kproto.messages.k20_delete_topics import DeleteTopicsRequest
from kproto.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kproto.messages.k42_delete_groups import DeleteGroupsRequest
from kproto.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.k88_streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from kproto.messages.k89_streams_group_describe import StreamsGroupDescribeRequest
from kproto_server.releases.kafka_version import KafkaVersion
from tests.membership.members import UUID, Step, Transport

REBALANCE_MS = 2_000
PROPAGATION_MS = 1_000
"""How long a change of topics takes to reach the coordinator, at most."""
Tasks = Mapping[str, Sequence[int]]
"""Partitions by subtopology id."""
GROUP, SET, DELETE = 32, 0, 1
"""A resource type and operations of IncrementalAlterConfigs."""
LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
NO_TASKS: Tasks = MappingProxyType({})


class Owned(NamedTuple):
    """The tasks of a member by their roles."""

    active: Tasks = NO_TASKS
    standby: Tasks = NO_TASKS
    warmup: Tasks = NO_TASKS


ASSIGNED = Owned({"stands for": ()})
"""Stands for what a member was assigned."""


class Member(NamedTuple):
    """What a member knows from its responses."""

    epoch: int = 0
    owned: Owned = Owned()
    endpoint_epoch: int = -1


def topic_info(name: str, partitions: int = 0, factor: int = 0, **configs: str) -> TopicInfo:
    """Return an internal topic of a topology; its name is without the script's."""
    given = tuple(KeyValue(key=key.replace("_", "."), value=value) for key, value in configs.items())
    return TopicInfo(name=name, partitions=partitions, replication_factor=factor, topic_configs=given)


def subtopology(
    subtopology_id: str = "0",
    sources: Sequence[str] = ("t",),
    *,
    changelogs: Sequence[TopicInfo] = (),
    sinks: Sequence[str] = (),
    repartition: Sequence[TopicInfo] = (),
    copartition: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    regex: Sequence[str] = (),
) -> Subtopology:
    """Return a subtopology; ``copartition``: indexes of sources and of repartition topics."""
    groups = tuple(
        CopartitionGroup(source_topics=tuple(first), source_topic_regex=(), repartition_source_topics=tuple(second))
        for first, second in copartition
    )
    return Subtopology(
        subtopology_id=subtopology_id,
        source_topics=tuple(sources),
        source_topic_regex=tuple(regex),
        state_changelog_topics=tuple(changelogs),
        repartition_sink_topics=tuple(sinks),
        repartition_source_topics=tuple(repartition),
        copartition_groups=groups,
    )


STATELESS = (subtopology(),)
STATEFUL = (subtopology(changelogs=[topic_info("log")]),)


class Application:
    """The members of one group; each of their requests is a step of the transcript."""

    def __init__(self, transport: Transport, release: str, name: str, version: int) -> None:
        self.steps: list[Step] = []
        self.name = name
        """Begins the names of the script's group and topics."""
        self.kafka_version = KafkaVersion.named(release)
        self.version = version
        """Of StreamsGroupHeartbeat and StreamsGroupDescribe."""
        self.members: dict[str, Member] = {}
        self._transport = transport

    # Requests that are no steps.

    def create(self, topic: str = "t", partitions: int = 2, *, waits: bool = True) -> None:
        """Create a topic; return when it has leaders, and the group a coordinator."""
        creatable = CreatableTopic(
            name=self.full(topic), num_partitions=partitions, replication_factor=1, assignments=(), configs=()
        )
        self._ask(CreateTopicsRequest(topics=(creatable,), timeout_ms=10_000), 5)
        if waits:
            self.wait_for(topic)

    def wait_for(self, *topics: str) -> None:
        """Return when topics have leaders, and the coordinator knows them."""
        for topic in topics:
            metadata = MetadataRequest(topics=(MetadataRequestTopic(name=self.full(topic)),))
            while True:
                found = self._ask(metadata, 12).topics[0]
                if not found.error_code and not any(one.error_code for one in found.partitions):
                    break
        self.warm_up()
        self._transport.pass_time(PROPAGATION_MS)  # until the coordinator knows the topics, too

    def warm_up(self) -> None:
        """Return when the group has a coordinator."""
        describe = StreamsGroupDescribeRequest(group_ids=(self.full("g"),), include_authorized_operations=False)
        while self._ask(FindCoordinatorRequest(key=self.full("g")), 1).error_code:
            pass
        while self._ask(describe, 0).groups[0].error_code in LOADING:
            pass

    def add_partitions(self, topic: str, count: int) -> None:
        request = CreatePartitionsTopic(name=self.full(topic), count=count, assignments=None)
        self._ask(CreatePartitionsRequest(topics=(request,), timeout_ms=5_000, validate_only=False), 3)
        self._transport.pass_time(PROPAGATION_MS)

    def delete_topic(self, topic: str, *, waits: bool = True) -> None:
        self._ask(DeleteTopicsRequest(topic_names=(self.full(topic),), timeout_ms=5_000), 4)
        if waits:
            self._transport.pass_time(2 * PROPAGATION_MS)

    def _ask(self, request: Request, version: int) -> Any:
        self._transport.send("setup", request, version)
        found: list[tuple[str, Any]] = []
        while not found:
            found = self._transport.responses()
        return found[0][1]

    # Requests.

    def join(
        self, name: str, topology: Iterable[Subtopology] = STATELESS, *, topology_epoch: int = 0, **fields: Any
    ) -> None:
        """Send a heartbeat with epoch 0 and all fields."""
        given: dict[str, Any] = {
            "rebalance_timeout_ms": REBALANCE_MS,
            "topology": Topology(epoch=topology_epoch, subtopologies=tuple(map(self._named, topology))),
            "process_id": f"process of {name}",
            "client_tags": (),
            **fields,
        }
        self.beat(name, 0, owned=Owned(), **given)

    def beat(self, name: str, epoch: int | None = None, owned: Owned | None = ASSIGNED, **fields: Any) -> None:
        """Send a heartbeat, by default with the member's epoch and all that it was assigned."""
        known = self.members.get(name, Member())
        if owned is ASSIGNED:
            owned = known.owned
        if owned is not None:
            for role, tasks in zip(("active_tasks", "standby_tasks", "warmup_tasks"), owned, strict=True):
                fields.setdefault(role, task_ids(tasks))
        given = {
            "group_id": self.full("g"),
            "member_id": name,
            "member_epoch": known.epoch if epoch is None else epoch,
            "endpoint_information_epoch": known.endpoint_epoch,
            **fields,
        }
        for response in self.send(name, StreamsGroupHeartbeatRequest(**given), self.version):
            if response.error_code == ErrorCode.NONE:
                owned = known.owned
                if response.active_tasks is not None:
                    roles = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
                    owned = Owned(*[{one.subtopology_id: one.partitions for one in tasks or ()} for tasks in roles])
                self.members[name] = Member(response.member_epoch, owned, response.endpoint_information_epoch)
            elif response.error_code in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID):
                self.members[name] = Member()

    def leave(self, name: str, epoch: int = -1, **fields: Any) -> None:
        self.beat(name, epoch, owned=None, **fields)

    def settle(self, *names: str, rounds: int = 3) -> None:
        """Send heartbeats of all members in turn."""
        for _ in range(rounds):
            for name in names:
                self.beat(name)

    def describe(self, group: str = "g", **fields: bool) -> None:
        if not self.version:
            fields.pop("include_topology_description", None)
        request = StreamsGroupDescribeRequest(
            group_ids=(self.full(group) if group else group,), **{"include_authorized_operations": False, **fields}
        )
        self.send("admin", request, self.version)

    def list_groups(self, *types: str, states: Sequence[str] = ()) -> None:
        """List the script's groups; those of other scripts are left out."""
        response = self._ask(ListGroupsRequest(states_filter=tuple(states), types_filter=types), 5)
        groups = tuple(one for one in response.groups if one.group_id.startswith(f"{self.name}-"))
        self._note(f"admin: ListGroups {', '.join((*types, *states))}", [("admin", response.replace(groups=groups))])

    def configure(self, **configs: str | None) -> None:
        """Set configs of the group, or remove those that are None; an underscore stands for a dot."""
        changes = tuple(
            AlterableConfig(
                name=f"streams.{name.replace('_', '.')}", config_operation=DELETE if value is None else SET, value=value
            )
            for name, value in configs.items()
        )
        resource = AlterConfigsResource(resource_type=GROUP, resource_name=self.full("g"), configs=changes)
        self.send("admin", IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False), 1)
        self._transport.pass_time(PROPAGATION_MS // 2)

    def delete(self, *groups: str) -> None:
        self.send("admin", DeleteGroupsRequest(groups_names=tuple(map(self.full, groups or ("g",)))), 2)

    def commit(
        self, name: str, epoch: int | None = None, *, topic: str = "t", partition: int = 0, version: int = 9
    ) -> None:
        request = OffsetCommitRequest(
            group_id=self.full("g"),
            generation_id_or_member_epoch=self.members.get(name, Member()).epoch if epoch is None else epoch,
            member_id=name,
            topics=(
                OffsetCommitRequestTopic(
                    name=self.full(topic),
                    partitions=(
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=7, committed_metadata=""
                        ),
                    ),
                ),
            ),
        )
        self.send(name or "admin", request, version)

    def fetch(self, name: str | None, epoch: int | None = None) -> None:
        """Fetch an offset, as a member or, without a name, as an administrator."""
        known = -1 if name is None else self.members.get(name, Member()).epoch
        topic = OffsetFetchRequestTopics(name=self.full("t"), partition_indexes=(0,))
        group = OffsetFetchRequestGroup(
            group_id=self.full("g"), member_id=name, member_epoch=known if epoch is None else epoch, topics=(topic,)
        )
        self.send(name or "admin", OffsetFetchRequest(groups=(group,), require_stable=False), 9)

    def pass_time(self, duration_ms: int) -> None:
        self._transport.pass_time(duration_ms)
        self._note(f"{duration_ms} ms pass")

    def send(self, name: str, request: Request, version: int) -> list[Any]:
        """Send a request, and note all responses that come; return those to this connection."""
        self._transport.send(name, request, version)
        action = f"{name}: {APIS[request._api_key]} v{version}"
        return self._note(action, self._transport.responses()).get(name, [])

    def _note(self, action: str, responses: Sequence[tuple[str, Any]] = ()) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, response in (*responses, *self._transport.responses()):
            found.setdefault(name, []).append(response)
        step = {name: [self._as_json(response) for response in responses] for name, responses in sorted(found.items())}
        self.steps.append(Step(action, step))
        return found

    # Names.

    def full(self, name: str) -> str:
        """Return the name of a group or topic of this script."""
        return f"{self.name}-{name}"

    def _named(self, one: Subtopology) -> Subtopology:
        """Return a subtopology with full names of its topics."""
        return one.replace(
            source_topics=tuple(map(self._topic, one.source_topics)),
            repartition_sink_topics=tuple(map(self._topic, one.repartition_sink_topics)),
            state_changelog_topics=tuple(
                topic.replace(name=self._topic(topic.name)) for topic in one.state_changelog_topics
            ),
            repartition_source_topics=tuple(
                topic.replace(name=self._topic(topic.name)) for topic in one.repartition_source_topics
            ),
        )

    def _topic(self, name: str) -> str:
        is_plain = name.isalnum()
        return self.full(name) if is_plain else name

    def _as_json(self, value: Any) -> Any:
        """Return a value that JSON has and that another broker can have, too."""
        if isinstance(value, Struct):
            fields = {field.name: self._as_json(getattr(value, field.name)) for field in fields_of(type(value))}
            for name in ("throttle_time_ms", "client_host"):
                fields.pop(name, None)
            return {name: item for name, item in fields.items() if item is not None}
        if isinstance(value, str):
            return UUID.sub("UUID", value.replace(f"{self.name}-", ""))
        if isinstance(value, tuple):
            items = [self._as_json(item) for item in value]
            return sorted(items, key=str)
        return "no id" if isinstance(value, bytes) else value


def task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(TaskIds(subtopology_id=one, partitions=tuple(indexes)) for one, indexes in tasks.items())


def offsets(**found: int) -> tuple[TaskOffset, ...]:
    """Return offsets by tasks, as in ``_0_1=5``: of subtopology 0 and partition 1."""
    split = [(name.split("_"), offset) for name, offset in found.items()]
    return tuple(
        TaskOffset(subtopology_id=subtopology_id, partition=int(partition), offset=offset)
        for (_, subtopology_id, partition), offset in split
    )


def endpoint(port: int) -> Endpoint:
    return Endpoint(host="localhost", port=port)
