"""StreamsGroupTopologyDescriptionUpdate (API key 93): a member sends the full description of its topology."""

from __future__ import annotations

from kproto.declaration import Array, Int8, Int16, Int32, NullableString, String, Struct
from kproto.message import Request, Response


class TopologyDescriptionNode(Struct):
    name: String
    node_type: Int8
    source_topics: Array[String]
    sink_topic: NullableString = None
    stores: Array[String]
    successors: Array[String]


class TopologyDescriptionSubtopology(Struct):
    subtopology_id: String
    nodes: Array[TopologyDescriptionNode]


class TopologyDescriptionGlobalStore(Struct):
    source: TopologyDescriptionNode
    processor: TopologyDescriptionNode


class TopologyDescription(Struct):
    subtopologies: Array[TopologyDescriptionSubtopology]
    global_stores: Array[TopologyDescriptionGlobalStore]


class StreamsGroupTopologyDescriptionUpdateRequest(Request, api_key=93, versions=(0, 0), flexible=0):
    group_id: String
    member_id: String
    topology_epoch: Int32
    topology_description: TopologyDescription


class StreamsGroupTopologyDescriptionUpdateResponse(Response, api_key=93, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    error_message: NullableString = None
