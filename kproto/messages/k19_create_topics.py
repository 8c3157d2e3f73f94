"""CreateTopics (API key 19): an administrator creates topics."""

from __future__ import annotations

from typing import Annotated

from kproto.declaration import (
    ZERO_UUID,
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    NullableString,
    String,
    Struct,
    Uuid,
    ignorable,
    nullable,
    since,
    tag,
)
from kproto.message import Request, Response


class CreatableReplicaAssignment(Struct):
    partition_index: Int32
    broker_ids: Array[Int32]


class CreatableTopicConfig(Struct):
    name: String
    value: NullableString


class CreatableTopic(Struct):
    name: String
    num_partitions: Int32
    """-1: the broker's default, or the count of the assignments."""
    replication_factor: Int16
    """-1: the broker's default, or the count of the assignments."""
    assignments: Array[CreatableReplicaAssignment]
    configs: Array[CreatableTopicConfig]


class CreateTopicsRequest(Request, api_key=19, versions=(0, 7), flexible=5):
    """v1: + validate_only
    v2-v3: layout of v1
    v4: layout of v3; -1 for partitions or replicas is the broker's default
    v5: flexible
    v6-v7: layout of v5
    """

    topics: Array[CreatableTopic]
    timeout_ms: Int32 = 60000
    """How long to wait until the controller has created them."""
    validate_only: Annotated[Bool, since(1)] = False


class CreatableTopicConfigs(Struct):
    name: String
    value: NullableString
    read_only: Bool
    config_source: Int8 = -1
    """1: topic; 2: broker, dynamic; 3: all brokers, dynamic; 4: broker, static; 5: default; 6: broker's loggers."""
    is_sensitive: Bool


class CreatableTopicResult(Struct):
    name: String
    topic_id: Annotated[Uuid, since(7), ignorable] = ZERO_UUID
    error_code: Int16
    error_message: Annotated[NullableString, since(1), ignorable] = ""
    topic_config_error_code: Annotated[Int16, since(5), tag(0), ignorable] = 0
    num_partitions: Annotated[Int32, since(5), ignorable] = -1
    replication_factor: Annotated[Int16, since(5), ignorable] = -1
    configs: Annotated[Array[CreatableTopicConfigs] | None, since(5), nullable(), ignorable] = ()


class CreateTopicsResponse(Response, api_key=19, versions=(0, 7), flexible=5, has_slices=True):
    """v1: + topics[].error_message?
    v2: + throttle_time_ms
    v3: layout of v2; throttled at the client
    v4: layout of v3
    v5: + topics[].topic_config_error_code (tagged), + topics[].num_partitions, + topics[].replication_factor,
          + topics[].configs?, flexible
    v6: layout of v5; may return THROTTLING_QUOTA_EXCEEDED
    v7: + topics[].topic_id
    """

    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: Array[CreatableTopicResult]
