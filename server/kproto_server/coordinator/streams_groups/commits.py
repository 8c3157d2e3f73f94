"""Commits with an older epoch than the member's (KIP-1251)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k08_offset_commit import OffsetCommitRequest
    from kproto.messages.k28_txn_offset_commit import TxnOffsetCommitRequest
    from kproto.records.streams_group_records import StreamsGroupTopologyValue
    from kproto_server.cluster.topics import Topic
    from kproto_server.coordinator.streams_groups.data import StreamsMember


def had_partitions(
    topology: StreamsGroupTopologyValue | None,
    member: StreamsMember,
    request: OffsetCommitRequest | TxnOffsetCommitRequest,
    topics: Mapping[str, Topic],
) -> bool:
    """Return whether a member has had the active tasks of all partitions of a commit since the commit's epoch.

    ``topics``: those of the cluster, by name. Newer versions of the requests have topic ids.
    """
    epoch = request.generation_id_or_member_epoch
    readers = {
        topic: subtopology.subtopology_id
        for subtopology in (() if topology is None else topology.subtopologies)
        for topic in (*subtopology.source_topics, *[one.name for one in subtopology.repartition_source_topics])
    }
    names = {topics[name].topic_id: name for name in readers if name in topics}
    for topic in request.topics:
        name = topic.name or names.get(topic.topic_id, "")
        for partition in topic.partitions:
            since = member.task_epochs.get((readers.get(name, ""), partition.partition_index))
            if since is None or epoch < since:
                return False
    # The commit cache asks without the topics of the request: then the reference path decides.
    return bool(request.topics)
