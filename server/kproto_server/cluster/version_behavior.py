"""What Kafka releases do differently with topics, partitions and the configs that Admin clients change."""

from __future__ import annotations

from functools import cached_property

from kproto.codes import ErrorCode
from kproto_server.releases.release import VersionBehavior


class TopicBehavior(VersionBehavior):
    """The switches of topics and partitions."""

    @cached_property
    def isr_shrink_raises_leader_epoch(self) -> bool:
        """Whether the leader epoch of a partition rises also when a follower stops: in ZooKeeper mode, and in KRaft
        before 3.6 (measured on 2.8.2 and 4.4.0; PartitionChangeBuilder of 3.6)."""
        return not self.is_kraft or not self.at_least(3, 6)

    @cached_property
    def has_eligible_leader_replicas(self) -> bool:
        """Whether the last in-sync replica of a partition without leader is reported as eligible instead of in sync
        (KIP-966): where eligible.leader.replicas.version is finalized, from 4.1 on (measured on 4.0.2, 4.1.2 and
        4.4.0)."""
        return self.at_least(4, 1)

    @cached_property
    def has_new_topic_name_messages(self) -> bool:
        """Whether the message for an invalid topic name begins "Topic name is invalid: ..." (measured on 3.2.3 and
        3.3.2)."""
        return self.at_least(3, 3)

    @cached_property
    def long_topic_name_label(self) -> str:
        """The words before the name in the older message for a name that is too long (measured on 2.8.2, 3.0.2 and
        3.2.3)."""
        return "Topic name" if self.at_least(3, 0) else "topic name"

    @cached_property
    def has_cordoned_log_dirs(self) -> bool:
        """Whether log directories can be cordoned, which the message for too few brokers mentions (measured on 4.2.2
        and 4.3.1)."""
        return self.at_least(4, 3)

    @cached_property
    def refuses_partition_gaps(self) -> bool:
        """Whether the partitions of an assignment must be numbered from 0 without gaps (measured on 2.2.2 and
        2.3.1)."""
        return self.at_least(2, 3)

    @cached_property
    def metadata_checks_topic_name_first(self) -> bool:
        """Whether Metadata returns INVALID_TOPIC_EXCEPTION for an invalid name even where no topic may be created,
        instead of UNKNOWN_TOPIC_OR_PARTITION: from 2.8 on, in both modes (BA-32; measured on 2.7.2 and 2.8.2)."""
        return self.at_least(2, 8)

    @cached_property
    def metadata_always_creates_internal_topics(self) -> bool:
        """Whether Metadata that names an internal topic creates it, whatever settings and request allow: up to 2.7.

        From 2.8 on the rules of other topics hold, with UNKNOWN_TOPIC_OR_PARTITION where no topic may be created. Too
        few brokers give INVALID_REPLICATION_FACTOR with ZooKeeper and UNKNOWN_TOPIC_OR_PARTITION with KRaft (BA-50;
        measured on 2.7.2, 2.8.2, 3.3.2, 3.9.2 and 4.4.0).
        """
        return not self.at_least(2, 8)

    @cached_property
    def auto_creation_returns_leader_not_available(self) -> bool:
        """Whether Metadata returns LEADER_NOT_AVAILABLE for a topic that it has just begun to create, instead of
        UNKNOWN_TOPIC_OR_PARTITION (BA-32)."""
        return not self.is_kraft

    @cached_property
    def enforces_offsets_replication_factor(self) -> bool:
        """Whether the offsets topic is never created with fewer replicas than configured: from 0.11 on (KIP-115).
        Before, it has at most as many replicas as there are brokers (BA-50)."""
        return self.at_least(0, 11)

    @cached_property
    def writes_sentences(self) -> bool:
        """Whether the messages about wrong counts and factors are sentences (measured on 0.11.0.3 and 1.1.1)."""
        return self.at_least(1, 0)

    @cached_property
    def creates_topics_with_defaults(self) -> bool:
        """Whether -1 partitions or replicas in CreateTopics, of any version, mean the broker's default: from 2.4 on
        (BA-90; measured on 2.3.1 and 2.4.1)."""
        return self.at_least(2, 4)

    @cached_property
    def checks_topic_exists_first(self) -> bool:
        """Whether CreateTopics in ZooKeeper mode reports before any other error that the topic exists (BA-50; measured
        on 2.2.2 and 2.3.1)."""
        return self.at_least(2, 3)

    @cached_property
    def checks_configs_before_partitions(self) -> bool:
        """Whether CreateTopics in ZooKeeper mode then checks the configs before the partitions and the name (BA-50;
        measured on 2.6.3 and 2.7.2)."""
        return not self.at_least(2, 7)

    @cached_property
    def invalid_config_error(self) -> ErrorCode:
        """The error of CreateTopics for an invalid config value: INVALID_CONFIG, but UNKNOWN_SERVER_ERROR up to 2.0
        (measured on 2.0.1 and 2.1.1)."""
        return ErrorCode.INVALID_CONFIG if self.at_least(2, 1) else ErrorCode.UNKNOWN_SERVER_ERROR

    @cached_property
    def null_config_error(self) -> ErrorCode:
        """The error of CreateTopics for a config without value: UNKNOWN_SERVER_ERROR, INVALID_REQUEST from 2.6 on,
        INVALID_CONFIG from 3.3 on (measured on 2.5.1, 2.6.3, 3.2.3 and 3.3.2)."""
        if self.at_least(3, 3):
            return ErrorCode.INVALID_CONFIG
        return ErrorCode.INVALID_REQUEST if self.at_least(2, 6) else ErrorCode.UNKNOWN_SERVER_ERROR

    @cached_property
    def added_partitions_adjective(self) -> str:
        """The word before "partitions" in the message for too many new partitions, with a space behind it (measured on
        3.9.2 and 4.4.0)."""
        return "additional " if self.at_least(4, 4) else ""


class AlterConfigsBehavior(VersionBehavior):
    """The switches of AlterConfigs and IncrementalAlterConfigs."""

    def resource_name(self, kind: str, name: str) -> str:
        """Return how error messages name a topic or broker (measured on 1.1.1 and 2.0.1)."""
        if self.at_least(2, 0):
            return f"ConfigResource(type={kind}, name='{name}')"
        return f"Resource(type={kind}, name='{name}'}}"

    @cached_property
    def preprocesses_changes(self) -> bool:
        """Whether both modes check the changes in the same way before they apply them: KRaft, and ZooKeeper from 3.2 on
        (measured on 3.0.2 and 3.2.3)."""
        return self.is_kraft or self.at_least(3, 2)

    @cached_property
    def repeats_appended_items(self) -> bool:
        """Whether IncrementalAlterConfigs appends an item to a list that has it (measured on 3.2.3 and 3.3.2)."""
        return not self.at_least(3, 3)

    @cached_property
    def names_unknown_lists(self) -> bool:
        """Whether APPEND to a setting that the release does not have, and SUBTRACT from it, are INVALID_CONFIG instead
        of UNKNOWN_SERVER_ERROR (measured on 4.2.2 and 4.3.1)."""
        return self.at_least(4, 3)

    @cached_property
    def explains_invalid_changes(self) -> bool:
        """Whether IncrementalAlterConfigs has a message for a change without value and for an unknown operation
        (measured on 2.5.1 and 2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def checks_name_of_missing_topics(self) -> bool:
        """Whether changes to a missing topic with an invalid name are refused because of the name: in all releases but
        ZooKeeper ones from 2.7 on (measured on 2.6.3 and 2.7.2, and on 2.8.2 and 3.9.2)."""
        return self.is_kraft or not self.at_least(2, 7)

    def missing_topic_error(self, name: str) -> tuple[ErrorCode, str | None]:
        """Return error and message for changes to a topic that does not exist (measured on 2.5.1, 2.6.3 and 2.7.2)."""
        if self.at_least(2, 7):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        return ErrorCode.UNKNOWN_SERVER_ERROR, None if self.at_least(2, 6) else f'Topic "{name}" does not exist.'

    @cached_property
    def returns_unknown_resource_types(self) -> bool:
        """Whether the AlterConfigs response repeats an unknown resource type, instead of 0 (measured on 2.5.1 and
        2.6.3)."""
        return self.at_least(2, 6)

    @cached_property
    def lists_fixed_settings_in_brackets(self) -> bool:
        """Whether the message for settings that cannot change lists them as ``[a, b]`` instead of ``Set(a, b)``
        (measured on 4.2.2 and 4.3.1)."""
        return self.at_least(4, 3)
