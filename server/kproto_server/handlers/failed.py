"""The responses to requests whose result cannot be encoded, because a string is too long for the protocol, or whose
changes of topics and configs cannot be stored.

Real brokers, too, decide first and find out when they encode the response: an error message that quotes a long name, or
a name that has grown because malformed bytes became replacement characters. They send UNKNOWN_SERVER_ERROR for all that
was requested instead, although it may have been done (measured on 0.10.2.2, 2.8.2 and 4.4.0).

DEVIATION: a real broker whose disk is full ends without a response (measured on 2.8.2 and 4.4.0).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto import registry
from kproto.codes import ErrorCode
from kproto.declaration import fields_of
from kproto.messages import APIS
from kproto_server.cluster.topics import TopicsNotStored
from kproto_server.handlers._error_responses import ITSELF, ErrorResponse, Items, build

if TYPE_CHECKING:
    from kproto.errors import StringTooLong
    from kproto.message import Request, Response

FAILED = ErrorResponse(ErrorCode.UNKNOWN_SERVER_ERROR)

_RESOURCE = {"resource_type": "resource_type", "resource_name": "resource_name"}
_NO_MESSAGE = {"error_message": None}
_ALTERED = FAILED._replace(items=(Items("responses", "resources", _RESOURCE),), values=_NO_MESSAGE)

_DESCRIBED = FAILED._replace(items=(Items("groups", "group_ids", {"group_id": ITSELF}),), values=_NO_MESSAGE)
_NAME = {"name": "name"}

RESPONSES: dict[str, ErrorResponse] = {
    "CreateTopics": FAILED._replace(items=(Items("topics", "topics", _NAME),), values={**_NO_MESSAGE, "configs": ()}),
    "CreatePartitions": FAILED._replace(items=(Items("results", "topics", _NAME),), values=_NO_MESSAGE),
    "DescribeConfigs": FAILED._replace(items=(Items("results", "resources", _RESOURCE),)),
    "DeleteTopics": FAILED._replace(
        items=(
            Items("responses", "topics", {"name": "name", "topic_id": "topic_id"}),
            Items("responses", "topic_names", {"name": ITSELF}),
        ),
        values=_NO_MESSAGE,
    ),
    "AlterClientQuotas": FAILED._replace(
        items=(
            Items(
                "entries",
                "entries",
                {},
                Items("entity", "entity", {"entity_type": "entity_type", "entity_name": "entity_name"}),
            ),
        ),
        values=_NO_MESSAGE,
    ),
    "ElectLeaders": FAILED._replace(
        items=(
            Items(
                "replica_election_results",
                "topic_partitions",
                {"topic": "topic"},
                Items("partition_result", "partitions", {"partition_id": ITSELF}),
            ),
        ),
        values=_NO_MESSAGE,
        is_everywhere=True,
    ),
    "AlterPartitionReassignments": FAILED._replace(
        items=(
            Items(
                "responses", "topics", _NAME, Items("partitions", "partitions", {"partition_index": "partition_index"})
            ),
        ),
        values=_NO_MESSAGE,
        is_everywhere=True,
    ),
    "DescribeUserScramCredentials": FAILED._replace(
        items=(Items("results", "users", {}),), values=_NO_MESSAGE, is_everywhere=True
    ),
    "DescribeProducers": FAILED._replace(
        items=(
            Items("topics", "topics", _NAME, Items("partitions", "partition_indexes", {"partition_index": ITSELF})),
        ),
        values=_NO_MESSAGE,
    ),
    "ConsumerGroupDescribe": _DESCRIBED,
    "ShareGroupDescribe": _DESCRIBED,
    "StreamsGroupDescribe": _DESCRIBED,
    "StreamsGroupHeartbeat": FAILED._replace(values=_NO_MESSAGE),
    "UpdateFeatures": FAILED._replace(values=_NO_MESSAGE),
    "AlterConfigs": _ALTERED,
    "IncrementalAlterConfigs": _ALTERED,
}
"""The response of each API whose items have the error, or that has no message, by name. Others have the error in the
response itself, or nowhere."""


def respond(request: Request, api_version: int, error: StringTooLong | TopicsNotStored) -> Response:
    """Return the response to a request that has failed with an error.

    Raises:
        StringTooLong, TopicsNotStored: the error, if the API has no such response.
    """
    response_class = registry.response_class(request._api_key)
    response = RESPONSES.get(APIS[request._api_key], FAILED)
    has_error = any(f.name == "error_code" and f.versions.covers(api_version) for f in fields_of(response_class))
    if not (response.items or has_error):
        raise error
    if isinstance(error, TopicsNotStored):
        response = response._replace(error=ErrorCode.KAFKA_STORAGE_ERROR)
    return build(response, request, response_class, api_version)
