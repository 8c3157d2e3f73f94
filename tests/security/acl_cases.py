"""Requests of a user who lacks one right or all: each API that a broker authorizes, with the rights that it needs.

A case is tried with all rights, without any, and without each one. Values that begin with ``@`` stand for what a broker
chooses: ``@orders`` is the id of a topic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kproto.records.record import Record
from kproto.records.record_batch import build_record_batch

BATCH = build_record_batch([Record(None, b"v", timestamp=1_700_000_000_000)])
OWN = "payments"
"""A transactional id."""


class Case(NamedTuple):
    """A request, and the rights that its parts need: ``resource:name:operation``."""

    api_key: int
    request: dict[str, Any]
    rights: tuple[str, ...]
    oldest: int = 0
    """The first version that has all of this."""
    newest: int = 99
    has_all: bool = True
    """Whether the case is tried with all rights, too."""


def _on(operation: str, *names: str, kind: str = "topic") -> tuple[str, ...]:
    return tuple(f"{kind}:{name}:{operation}" for name in names)


def _topics(item: dict[str, Any], *, name: str = "name", array: str = "partitions") -> list[dict[str, Any]]:
    return [{name: topic, "topic_id": f"@{topic}", array: [item] if item else [0]} for topic in ("secret", "orders")]


CLUSTER = "cluster:kafka-cluster:"
GROUP_READ, GROUP_DESCRIBE, GROUP_DELETE = (f"group:billing:{one}" for one in ("READ", "DESCRIBE", "DELETE"))
TXN_WRITE, TXN_DESCRIBE = f"transactional_id:{OWN}:WRITE", f"transactional_id:{OWN}:DESCRIBE"
BOTH = ("secret", "orders")
NO_PRODUCER: dict[str, Any] = {"producer_id": -1, "producer_epoch": -1}
FOREIGN: dict[str, Any] = {"producer_id": 99_999, "producer_epoch": 0}
MEMBER: dict[str, Any] = {
    "group_id": "billing",
    "member_id": "",
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
}
COMMITS = _topics({"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "commit_timestamp": -1,
                   "committed_metadata": ""})  # fmt: skip
STATE = [{"topic_id": "@orders", "partitions": [{"partition": 0, "state_epoch": -1, "leader_epoch": -1}]}]
BROKER, TOPIC, GROUP = 4, 2, 32


def _resources(*resources: tuple[int, str], **values: Any) -> list[dict[str, Any]]:
    return [{"resource_type": kind, "resource_name": name, **values} for kind, name in resources]


ACL: dict[str, Any] = {
    "resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3, "principal": "User:bob", "host": "*",
    "operation": 3, "permission_type": 3,
}  # fmt: skip
NO_ACLS: dict[str, Any] = {"resource_type_filter": 2, "resource_name_filter": "absent", "pattern_type_filter": 3,
           "principal_filter": "User:dave", "host_filter": None, "operation": 1, "permission_type": 1}  # fmt: skip
BOBS_ACLS: dict[str, Any] = {
    **NO_ACLS, "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": "User:bob",
}  # fmt: skip
WRONG_ACLS: dict[str, dict[str, Any]] = {
    "resource type UNKNOWN": {"resource_type": 0},
    "resource type ANY": {"resource_type": 1},
    "resource type 99": {"resource_type": 99},
    "no name": {"resource_name": ""},
    "a wrong name of the cluster": {"resource_type": 4},
    "pattern type UNKNOWN": {"resource_pattern_type": 0},
    "pattern type ANY": {"resource_pattern_type": 1},
    "pattern type MATCH": {"resource_pattern_type": 2},
    "pattern type PREFIXED": {"resource_pattern_type": 4},
    "principal without type": {"principal": "bob"},
    "no principal": {"principal": ""},
    "no host": {"host": ""},
    "operation UNKNOWN": {"operation": 0},
    "operation ANY": {"operation": 1},
    "operation of another resource type": {"operation": 12},
    "permission UNKNOWN": {"permission_type": 0},
    "permission ANY": {"permission_type": 1},
    "resource type USER": {"resource_type": 7, "resource_name": "User:carol", "operation": 13},
}
WRONG_FILTERS: dict[str, dict[str, Any]] = {
    "resource type UNKNOWN": {"resource_type_filter": 0},
    "pattern type UNKNOWN": {"pattern_type_filter": 0},
    "operation UNKNOWN": {"operation": 0},
    "permission UNKNOWN": {"permission_type": 0},
    "no name": {"resource_name_filter": ""},
    "principal without type": {"principal_filter": "dave"},
}

CASES: dict[str, Case] = {
    "Produce": Case(
        0,
        {"transactional_id": None, "acks": 1, "timeout_ms": 1000,
         "topic_data": _topics({"index": 0, "records": BATCH}, array="partition_data")},
        _on("WRITE", *BOTH), 3,
    ),
    "Produce to a missing topic": Case(
        0,
        {"transactional_id": None, "acks": 1, "timeout_ms": 1000,
         "topic_data": [{"name": "absent", "topic_id": "@absent", "partition_data": [{"index": 0, "records": BATCH}]}]},
        _on("WRITE", "absent"), 3,
    ),
    "Fetch": Case(
        1,
        {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 10_000, "isolation_level": 0, "session_id": 0,
         "session_epoch": -1, "rack_id": "", "forgotten_topics_data": [],
         "topics": _topics({"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
                            "log_start_offset": -1, "partition_max_bytes": 1000}, name="topic")},
        _on("READ", *BOTH), 4,
    ),
    "Fetch of a replica": Case(
        1,
        {"replica_id": 2, "replica_state": {"replica_id": 2, "replica_epoch": -1}, "max_wait_ms": 0, "min_bytes": 0,
         "max_bytes": 10_000, "session_id": 0, "session_epoch": -1, "rack_id": "", "forgotten_topics_data": [],
         "topics": _topics({"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0, "last_fetched_epoch": -1,
                            "log_start_offset": -1, "partition_max_bytes": 1000}, name="topic")},
        (), 4,
    ),
    "ListOffsets": Case(
        2,
        {"replica_id": -1, "isolation_level": 0, "timeout_ms": 1000,
         "topics": _topics({"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2, "max_num_offsets": 1})},
        _on("DESCRIBE", *BOTH),
    ),
    "Metadata": Case(
        3,
        {"topics": [{"name": name} for name in BOTH], "allow_auto_topic_creation": False,
         "include_cluster_authorized_operations": True, "include_topic_authorized_operations": True},
        (*_on("DESCRIBE", *BOTH), CLUSTER + "DESCRIBE"),
    ),
    "Metadata of all topics": Case(
        3,
        {"topics": None, "allow_auto_topic_creation": True, "include_cluster_authorized_operations": False,
         "include_topic_authorized_operations": True},
        (*_on("DESCRIBE", *BOTH), "topic:orders:READ", "topic:orders:ALTER_CONFIGS"), 1,
    ),
    "Metadata by id": Case(
        3,
        {"topics": [{"name": None, "topic_id": f"@{name}"} for name in (*BOTH, "absent")],
         "allow_auto_topic_creation": False, "include_topic_authorized_operations": False},
        _on("DESCRIBE", *BOTH), 12,
    ),
    "Metadata of a missing topic": Case(
        3,
        {"topics": [{"name": "absent"}, {"name": "secret"}], "allow_auto_topic_creation": False,
         "include_topic_authorized_operations": False},
        (*_on("DESCRIBE", "absent"), *_on("CREATE", "absent")), 4,
    ),
    "Metadata that would create a topic": Case(
        3,
        {"topics": [{"name": "in valid"}], "allow_auto_topic_creation": True,
         "include_topic_authorized_operations": False},
        (*_on("DESCRIBE", "in valid"), *_on("CREATE", "in valid")), 4,
    ),
    "Metadata that would create a topic, by the cluster": Case(
        3,
        {"topics": [{"name": "in valid"}], "allow_auto_topic_creation": True,
         "include_topic_authorized_operations": False},
        (*_on("DESCRIBE", "in valid"), CLUSTER + "CREATE"), 4,
    ),
    "OffsetCommit": Case(8, {**MEMBER, "topics": COMMITS, "retention_time_ms": -1},
                         (GROUP_READ, *_on("READ", *BOTH)), 2),
    "OffsetFetch": Case(
        9,
        {"group_id": "billing", "topics": [{"name": name, "partition_indexes": [0]} for name in BOTH],
         "groups": [{"group_id": "billing", "member_id": None, "member_epoch": -1,
                     "topics": [{"name": name, "topic_id": f"@{name}", "partition_indexes": [0]} for name in BOTH]}]},
        (GROUP_DESCRIBE, *_on("DESCRIBE", *BOTH)), 1,
    ),
    "OffsetFetch of all": Case(
        9,
        {"group_id": "billing", "topics": None, "require_stable": False,
         "groups": [{"group_id": "billing", "member_id": None, "member_epoch": -1, "topics": None}]},
        (GROUP_DESCRIBE, *_on("DESCRIBE", *BOTH)), 2,
    ),
    "FindCoordinator": Case(10, {"key": "billing", "key_type": 0, "coordinator_keys": ["billing", "other"]},
                            (GROUP_DESCRIBE,)),
    "FindCoordinator of a transaction": Case(
        10, {"key": OWN, "key_type": 1, "coordinator_keys": [OWN, "other"]}, (TXN_DESCRIBE,), 1),
    "JoinGroup": Case(
        11,
        {"group_id": "billing", "session_timeout_ms": 1, "rebalance_timeout_ms": 1, "member_id": "",
         "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]},
        (GROUP_READ,),
    ),
    "Heartbeat": Case(12, {**MEMBER, "member_id": "gone"}, (GROUP_READ,)),
    "LeaveGroup": Case(13, {**MEMBER, "member_id": "gone", "members": [{"member_id": "gone"}]}, (GROUP_READ,)),
    "SyncGroup": Case(
        14, {**MEMBER, "member_id": "gone", "protocol_type": "consumer", "protocol_name": "range", "assignments": []},
        (GROUP_READ,),
    ),
    "DescribeGroups": Case(15, {"groups": ["billing", "other"], "include_authorized_operations": True},
                           (GROUP_DESCRIBE, GROUP_READ)),
    "ListGroups": Case(16, {"states_filter": [], "types_filter": []}, (GROUP_DESCRIBE,)),
    "ListGroups by the cluster": Case(16, {"states_filter": [], "types_filter": []}, (CLUSTER + "DESCRIBE",)),
    "CreateTopics": Case(
        19,
        {"topics": [{"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
                    for name in ("fresh", "orders", "new")], "timeout_ms": 5000, "validate_only": True},
        (*_on("CREATE", "fresh", "orders"), *_on("DESCRIBE_CONFIGS", "fresh")), 1,
    ),
    "CreateTopics by the cluster": Case(
        19,
        {"topics": [{"name": "fresh", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}],
         "timeout_ms": 5000, "validate_only": True},
        (CLUSTER + "CREATE",), 1,
    ),
    "DeleteTopics": Case(
        20,
        {"topics": [{"name": name} for name in ("absent", "secret")], "topic_names": ["absent", "secret"],
         "timeout_ms": 5000},
        (*_on("DELETE", "absent"), *_on("DESCRIBE", "absent", "secret")),
    ),
    "DeleteTopics by id": Case(
        20,
        {"topics": [{"name": None, "topic_id": f"@{name}"} for name in ("absent", "secret")], "timeout_ms": 5000},
        (*_on("DELETE", "absent"), *_on("DESCRIBE", "absent", "secret")), 6,
    ),
    "DeleteTopics by the cluster": Case(
        20, {"topics": [{"name": "absent"}], "topic_names": ["absent"], "timeout_ms": 5000}, (CLUSTER + "DELETE",)),
    "DeleteRecords": Case(
        21, {"topics": _topics({"partition_index": 0, "offset": 0}), "timeout_ms": 5000}, _on("DELETE", *BOTH)),
    "InitProducerId": Case(22, {"transactional_id": None, "transaction_timeout_ms": 1000, **NO_PRODUCER},
                           (CLUSTER + "IDEMPOTENT_WRITE",)),
    "InitProducerId by a topic": Case(22, {"transactional_id": None, "transaction_timeout_ms": 1000, **NO_PRODUCER},
                                      _on("WRITE", "orders")),
    "InitProducerId of a transaction": Case(
        22, {"transactional_id": OWN, "transaction_timeout_ms": 1000, **NO_PRODUCER}, (TXN_WRITE,)),
    "OffsetForLeaderEpoch": Case(
        23, {"replica_id": -1, "topics": _topics({"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0},
                                                 name="topic")},
        _on("DESCRIBE", *BOTH),
    ),
    "OffsetForLeaderEpoch by the cluster": Case(
        23, {"replica_id": -1, "topics": _topics({"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0},
                                                 name="topic")},
        (CLUSTER + "CLUSTER_ACTION",),
    ),
    "AddPartitionsToTxn": Case(
        24,
        {"v3_and_below_transactional_id": OWN, "v3_and_below_producer_id": 99_999, "v3_and_below_producer_epoch": 0,
         "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in BOTH],
         "transactions": [{"transactional_id": OWN, **FOREIGN, "verify_only": False,
                           "topics": [{"name": name, "partitions": [0]} for name in BOTH]}]},
        (TXN_WRITE, *_on("WRITE", *BOTH)), 0, 3,
    ),
    "AddPartitionsToTxn of brokers": Case(
        24,
        {"transactions": [{"transactional_id": OWN, **FOREIGN, "verify_only": False,
                           "topics": [{"name": name, "partitions": [0]} for name in BOTH]}]},
        (CLUSTER + "CLUSTER_ACTION",), 4,
    ),
    "AddOffsetsToTxn": Case(25, {"transactional_id": OWN, **FOREIGN, "group_id": "billing"}, (TXN_WRITE, GROUP_READ)),
    "EndTxn": Case(26, {"transactional_id": OWN, **FOREIGN, "committed": True}, (TXN_WRITE,)),
    "WriteTxnMarkers": Case(
        27, {"markers": [{**FOREIGN, "transaction_result": True, "coordinator_epoch": 0,
                          "topics": [{"name": "orders", "partition_indexes": [77]}]}]},
        (CLUSTER + "CLUSTER_ACTION",),
    ),
    "TxnOffsetCommit": Case(
        28, {**MEMBER, "transactional_id": OWN, **FOREIGN, "topics": COMMITS},
        (TXN_WRITE, GROUP_READ, *_on("READ", *BOTH)), 0, 5,
    ),
    "DescribeAcls": Case(29, NO_ACLS, (CLUSTER + "DESCRIBE",)),
    "CreateAcls": Case(30, {"creations": [ACL]}, (CLUSTER + "ALTER",)),
    **{
        f"CreateAcls, {name}": Case(30, {"creations": [ACL, {**ACL, **wrong}]}, (CLUSTER + "ALTER",), 1)
        for name, wrong in WRONG_ACLS.items()
    },
    "DescribeAcls after CreateAcls": Case(29, BOBS_ACLS, (CLUSTER + "DESCRIBE",)),
    "DescribeAcls, match": Case(29, {**BOBS_ACLS, "resource_name_filter": "orders", "pattern_type_filter": 2},
                                (CLUSTER + "DESCRIBE",), 1),
    "DeleteAcls": Case(31, {"filters": [NO_ACLS]}, (CLUSTER + "ALTER",)),
    **{
        f"{name}, {fault}": Case(key, {**NO_ACLS, **wrong, "filters": [NO_ACLS, {**NO_ACLS, **wrong}]},
                                 (CLUSTER + right,), 1)
        for key, name, right in ((29, "DescribeAcls", "DESCRIBE"), (31, "DeleteAcls", "ALTER"))
        for fault, wrong in WRONG_FILTERS.items()
    },
    "DeleteAcls that exist": Case(31, {"filters": [BOBS_ACLS]}, (CLUSTER + "ALTER",)),
    "DescribeConfigs": Case(
        32,
        {"resources": _resources((TOPIC, "secret"), (TOPIC, "orders"), (BROKER, "1"),
                                 configuration_keys=["cleanup.policy", "broker.rack"]),
         "include_synonyms": False, "include_documentation": False},
        (*_on("DESCRIBE_CONFIGS", *BOTH), CLUSTER + "DESCRIBE_CONFIGS"),
    ),
    "DescribeConfigs of a group": Case(
        32, {"resources": _resources((GROUP, "billing"), configuration_keys=["consumer.session.timeout.ms"])},
        _on("DESCRIBE_CONFIGS", "billing", kind="group"), 4,
    ),
    "AlterConfigs": Case(
        33, {"resources": _resources((TOPIC, "secret"), (TOPIC, "orders"), (BROKER, "1"), configs=[]),
             "validate_only": True},
        (*_on("ALTER_CONFIGS", *BOTH), CLUSTER + "ALTER_CONFIGS"),
    ),
    "IncrementalAlterConfigs": Case(
        44, {"resources": _resources((TOPIC, "secret"), (TOPIC, "orders"), (BROKER, "1"), configs=[]),
             "validate_only": True},
        (*_on("ALTER_CONFIGS", *BOTH), CLUSTER + "ALTER_CONFIGS"),
    ),
    "AlterReplicaLogDirs": Case(
        34, {"dirs": [{"path": "/nowhere", "topics": [{"name": "orders", "partitions": [0]}]}]}, (CLUSTER + "ALTER",)),
    "DescribeLogDirs": Case(35, {"topics": []}, (CLUSTER + "DESCRIBE",)),
    "CreatePartitions": Case(
        37, {"topics": [{"name": name, "count": 1, "assignments": None} for name in (*BOTH, "absent")],
             "timeout_ms": 5000, "validate_only": True},
        _on("ALTER", *BOTH, "absent"),
    ),
    "DeleteGroups": Case(42, {"groups_names": ["absent", "other"]}, _on("DELETE", "absent", kind="group")),
    "ElectLeaders": Case(
        43, {"election_type": 0, "topic_partitions": [{"topic": "orders", "partitions": [0]}], "timeout_ms": 5000},
        (CLUSTER + "ALTER",),
    ),
    "AlterPartitionReassignments": Case(
        45, {"timeout_ms": 5000, "allow_replication_factor_change": True,
             "topics": [{"name": "absent", "partitions": [{"partition_index": 0, "replicas": None}]}]},
        (CLUSTER + "ALTER",),
    ),
    "ListPartitionReassignments": Case(46, {"timeout_ms": 5000, "topics": None}, (CLUSTER + "DESCRIBE",)),
    "OffsetDelete": Case(
        47, {"group_id": "billing",
             "topics": [{"name": name, "partitions": [{"partition_index": 1}]} for name in BOTH]},
        (GROUP_DELETE, *_on("READ", *BOTH)),
    ),
    "DescribeClientQuotas": Case(48, {"components": [], "strict": False}, (CLUSTER + "DESCRIBE_CONFIGS",)),
    "AlterClientQuotas": Case(
        49, {"entries": [{"entity": [{"entity_type": "user", "entity_name": "bob"}],
                          "ops": [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]}],
             "validate_only": True},
        (CLUSTER + "ALTER_CONFIGS",),
    ),
    "DescribeUserScramCredentials": Case(50, {"users": [{"name": "bob"}]}, (CLUSTER + "DESCRIBE",)),
    "AlterUserScramCredentials": Case(
        51, {"deletions": [{"name": "bob", "mechanism": 1}], "upsertions": []}, (CLUSTER + "ALTER",)),
    "UpdateFeatures": Case(
        57, {"timeout_ms": 5000, "feature_updates": [{"feature": "none", "max_version_level": 1, "upgrade_type": 1}],
             "validate_only": True},
        (CLUSTER + "ALTER",),
    ),
    "DescribeCluster": Case(60, {"include_cluster_authorized_operations": True, "endpoint_type": 1},
                            (CLUSTER + "DESCRIBE", CLUSTER + "ALTER")),
    "DescribeProducers": Case(
        61, {"topics": [{"name": name, "partition_indexes": [0]} for name in BOTH]}, _on("READ", *BOTH)),
    "DescribeTransactions": Case(65, {"transactional_ids": [OWN, "other"]}, (TXN_DESCRIBE,)),
    "ListTransactions": Case(66, {"state_filters": [], "producer_id_filters": [], "duration_filter": -1},
                             (TXN_DESCRIBE,)),
    "ConsumerGroupHeartbeat": Case(
        68, {"group_id": "modern", "member_id": "gone", "member_epoch": 5, "rebalance_timeout_ms": -1},
        _on("READ", "modern", kind="group"),
    ),
    "ConsumerGroupDescribe": Case(69, {"group_ids": ["billing", "other"], "include_authorized_operations": True},
                                  (GROUP_DESCRIBE,)),
    "ListConfigResources": Case(74, {"resource_types": []}, (CLUSTER + "DESCRIBE_CONFIGS",)),
    "DescribeTopicPartitions": Case(
        75, {"topics": [{"name": name} for name in (*BOTH, "absent")], "response_partition_limit": 100, "cursor": None},
        _on("DESCRIBE", *BOTH, "absent"),
    ),
    "DescribeTopicPartitions of all topics": Case(
        75, {"topics": [], "response_partition_limit": 100, "cursor": None}, _on("DESCRIBE", *BOTH)),
    "ShareGroupHeartbeat": Case(
        76, {"group_id": "sharing", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 5},
        _on("READ", "sharing", kind="group"),
    ),
    "ShareGroupDescribe": Case(77, {"group_ids": ["sharing", "other"], "include_authorized_operations": True},
                               _on("DESCRIBE", "sharing", kind="group")),
    "ShareFetch": Case(
        78,
        {"group_id": "sharing", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "share_session_epoch": 7, "max_wait_ms": 0,
         "min_bytes": 0, "max_bytes": 1000, "max_records": 10, "batch_size": 10, "forgotten_topics_data": [],
         "topics": [{"topic_id": f"@{name}", "partitions": [{"partition_index": 0, "acknowledgement_batches": []}]}
                    for name in BOTH]},
        (*_on("READ", "sharing", kind="group"), *_on("READ", *BOTH)),
    ),
    "ShareAcknowledge": Case(
        79,
        {"group_id": "sharing", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "share_session_epoch": 7,
         "topics": [{"topic_id": f"@{name}", "partitions": [
             {"partition_index": 0, "acknowledgement_batches": [
                 {"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]}]} for name in BOTH]},
        (*_on("READ", "sharing", kind="group"), *_on("READ", *BOTH)),
    ),
    **{
        name: Case(api_key, {"group_id": "sharing", "topics": STATE}, (CLUSTER + "CLUSTER_ACTION",))
        for api_key, name in (
            (83, "InitializeShareGroupState"), (84, "ReadShareGroupState"), (85, "WriteShareGroupState"),
            (86, "DeleteShareGroupState"), (87, "ReadShareGroupStateSummary"),
        )
    },
    "StreamsGroupHeartbeat": Case(
        88, {"group_id": "flowing", "member_id": "gone", "member_epoch": 5, "rebalance_timeout_ms": -1},
        _on("READ", "flowing", kind="group"),
    ),
    "StreamsGroupHeartbeat with a topology": Case(
        88,
        {"group_id": "flowing", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0, "rebalance_timeout_ms": 1000,
         "process_id": "p", "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
         "topology": {"epoch": 0, "subtopologies": [
             {"subtopology_id": "0", "source_topics": ["orders", "secret"], "source_topic_regex": [],
              "state_changelog_topics": [], "repartition_sink_topics": [], "repartition_source_topics": [],
              "copartition_groups": []}]}},
        (*_on("READ", "flowing", kind="group"), *_on("DESCRIBE", *BOTH)), has_all=False,
    ),
    "StreamsGroupDescribe": Case(89, {"group_ids": ["flowing", "other"], "include_authorized_operations": True},
                                 _on("DESCRIBE", "flowing", kind="group")),
    "DescribeShareGroupOffsets": Case(
        90, {"groups": [{"group_id": "sharing",
                         "topics": [{"topic_name": name, "partitions": [0]} for name in BOTH]}]},
        (*_on("DESCRIBE", "sharing", kind="group"), *_on("DESCRIBE", *BOTH)),
    ),
    "DescribeShareGroupOffsets of all topics": Case(
        90, {"groups": [{"group_id": "sharing", "topics": None}]},
        (*_on("DESCRIBE", "sharing", kind="group"), *_on("DESCRIBE", *BOTH)),
    ),
    "AlterShareGroupOffsets": Case(
        91, {"group_id": "sharing", "topics": [
            {"topic_name": name, "partitions": [{"partition_index": 77, "start_offset": 0}]} for name in BOTH]},
        (*_on("READ", "sharing", kind="group"), *_on("READ", *BOTH)),
    ),
    "DeleteShareGroupOffsets": Case(
        92, {"group_id": "sharing", "topics": [{"topic_name": name} for name in BOTH]},
        (*_on("DELETE", "sharing", kind="group"), *_on("READ", *BOTH)),
    ),
    "ConsumerGroupHeartbeat that subscribes": Case(
        68, {"group_id": "modern", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0,
             "rebalance_timeout_ms": 1000, "subscribed_topic_names": list(BOTH), "topic_partitions": []},
        (*_on("READ", "modern", kind="group"), *_on("DESCRIBE", *BOTH)), has_all=False,
    ),
    "ShareGroupHeartbeat that subscribes": Case(
        76, {"group_id": "sharing", "member_id": "AAAAAAAAAAAAAAAAAAAAAQ", "member_epoch": 0,
             "subscribed_topic_names": list(BOTH)},
        (*_on("READ", "sharing", kind="group"), *_on("DESCRIBE", *BOTH)), has_all=False,
    ),
    "FindCoordinator of a share partition": Case(
        10, {"key_type": 2, "coordinator_keys": ["sharing:AAAAAAAAAAAAAAAAAAAAAQ:0"]},
        (CLUSTER + "CLUSTER_ACTION",), 6, has_all=False,
    ),
}  # fmt: skip
"""By name."""
