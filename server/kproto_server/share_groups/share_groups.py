"""All of share groups that one broker process has: states, share partitions and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto_server.cluster.features import SHARE_VERSION
from kproto_server.configuration.group_configs import effective
from kproto_server.coordinator.epoch_groups.deadlines import Deadlines
from kproto_server.share_groups.group_settings import broker_settings, group_settings
from kproto_server.share_groups.heartbeat import remove
from kproto_server.share_groups.members import ShareMembers
from kproto_server.share_groups.partitions import SharePartitions
from kproto_server.share_groups.sessions import ShareSessions
from kproto_server.share_groups.share_states import SharePartitionKey
from kproto_server.share_groups.state_store import ShareStateStore

if TYPE_CHECKING:
    from collections.abc import Collection

    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.coordinator.coordinator import GroupCoordinator
    from kproto_server.log_manager.log_manager import LogManager
    from kproto_server.share_groups.dead_letters import DeadLetters
    from kproto_server.share_groups.group_loading import ShareGroupsLoad
    from kproto_server.share_groups.group_settings import GroupSettings
    from kproto_server.share_groups.sessions import ShareSession
    from kproto_server.share_groups.version_behavior import ShareBehavior


DEAD_LETTERS_SINCE = 2
"""The level of `share.version` from which on share groups have dead letter queues (KIP-1191)."""


class ShareGroups:
    """The share coordinator and the share partitions of all nodes."""

    def __init__(
        self,
        behavior: ShareBehavior,
        settings: DynamicSettings,
        cluster: Cluster,
        groups: GroupCoordinator,
        log_manager: LogManager,
    ) -> None:
        self.behavior: ShareBehavior = behavior
        self._settings = settings
        self._groups = groups
        self._cluster = cluster
        self._log_manager = log_manager
        self._dead_letters: DeadLetters | None = None
        self.store: ShareStateStore = ShareStateStore(behavior, settings, cluster, groups, log_manager)
        self.partitions: SharePartitions = SharePartitions(
            cluster, groups.clock, self.store, self.settings_of, behavior, self._get_dead_letters
        )
        self.members: ShareMembers = ShareMembers(cluster, groups, self.store, self.settings_of, behavior)
        self.members.deadlines = Deadlines(lambda _, *removed: remove(self.members, *removed))
        self._sessions: dict[int, ShareSessions] = {}

    @property
    def is_enabled(self) -> bool:
        """Whether the cluster serves share groups: 4.1 has their APIs as a preview."""
        return self._cluster.features.level(SHARE_VERSION) >= 1

    def _get_dead_letters(self) -> DeadLetters | None:
        """Return the writer of dead letter queues, made when a group has one; None: the cluster has none."""
        if self._cluster.features.level(SHARE_VERSION) < DEAD_LETTERS_SINCE:
            return None
        if self._dead_letters is None:
            from kproto_server.share_groups.dead_letters import DeadLetters

            self._dead_letters = DeadLetters(self._cluster, self._groups.clock, self._settings, self._log_manager)
        return self._dead_letters

    def settings_of(self, group_id: str) -> GroupSettings:
        """Return the settings of a group."""
        settings, given = self._settings.current, self._settings.groups.get(group_id)
        return group_settings(settings, effective(settings, given)) if given else broker_settings(settings)

    def sessions(self, node_id: int) -> ShareSessions:
        """Return the share sessions of one node."""
        found = self._sessions.get(node_id)
        if found is None:
            count_max = self._settings.current.int("group.share.max.share.sessions")
            found = self._sessions[node_id] = ShareSessions(count_max)
        return found

    def end_session(self, node_id: int, session: ShareSession, now_ms: int) -> None:
        """Close a session, and release what its member has acquired in the partitions of the session."""
        self.sessions(node_id).close(session.group_id, session.member_id)
        keys = [SharePartitionKey(session.group_id, *partition) for partition in session.partitions]
        self.partitions.release(keys, session.member_id, now_ms)

    def disconnected(self, node_id: int, connection: object) -> None:
        """End the sessions of a connection that has ended.

        A group that has no session any more on the node begins again there with its stored states. A share partition
        without a stored start offset begins where `share.auto.offset.reset` says (measured on 4.2.2 and 4.4.0).
        """
        sessions = self.sessions(node_id)
        open_sessions, group_ids = sessions.end_connection(connection)
        if not group_ids:
            return
        now_ms = self._groups.clock.now_ms()
        for session in open_sessions:
            self.end_session(node_id, session, now_ms)
        self.store.then(lambda: self.partitions.forget_groups(sessions.without_sessions(group_ids), node_id))

    def begin_load(self) -> ShareGroupsLoad:
        """Begin to load the groups of one offsets partition."""
        from kproto_server.share_groups.group_loading import ShareGroupsLoad

        return ShareGroupsLoad(self.members)

    def forget_topics(self, topic_ids: Collection[bytes], now_ms: int) -> None:
        """Delete the states of deleted topics."""
        self.members.forget_topics(topic_ids, now_ms)
        for key in [key for key in self.store.states if key.topic_id in topic_ids]:
            self.store.delete(key, now_ms, lambda error: None)
        self.partitions.forget(topic_ids)

    def forget_states(self) -> None:
        """Drop all states and share partitions: the topic of the states was deleted."""
        self.partitions.forget()
        self.store.forget()

    def forget(self) -> None:
        """Drop everything: the broker is reset."""
        self._sessions.clear()
        self.forget_states()
