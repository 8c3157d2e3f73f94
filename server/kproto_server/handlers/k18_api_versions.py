"""ApiVersions (API key 18): the API versions and features of the broker's Kafka version (BA-20..26)."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from kproto import registry
from kproto.codes import ErrorCode
from kproto.messages.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kproto_server.observation.observe import shortened
from kproto_server.releases.release import VersionBehavior
from kproto_server.requests.endpoint import Endpoint

if TYPE_CHECKING:
    from kproto_server.observation.observe import Observations
    from kproto_server.releases.kafka_version import KafkaVersion
    from kproto_server.requests.context import RequestContext

API_VERSIONS = 18

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The pattern of a client's software name and version (BA-22)."""

NO_NODE = -1


class ApiVersionsBehavior(VersionBehavior):
    """What Kafka releases do differently in ApiVersions."""

    @cached_property
    def downgrade_lists_itself(self) -> bool:
        """Whether the response to an ApiVersions version that is too new lists the versions of ApiVersions that the
        broker serves: from 2.4 on (KIP-511); before, the list is empty (BA-21)."""
        return self.at_least(2, 4)


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    error = _refusal(request, context)
    if error:
        return ApiVersionsResponse(error_code=error, api_keys=())
    if context.api_version >= 3:
        context.connection.software_name = shortened(request.client_software_name)
        context.connection.software_version = shortened(request.client_software_version)
    if context.connection.authentication is not None:
        context.connection.authentication.note_negotiated()
    features = context.cluster.features
    return ApiVersionsResponse(
        error_code=ErrorCode.NONE,
        api_keys=_api_keys(
            context.kafka_version, has_receiver=context.settings.current.bool("client.telemetry.receiver.enable")
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, low, high in features.of_release.supported
            if low > 0 or context.api_version >= 4  # older clients fail on a least level of 0 (BA-24)
        ),
        finalized_features_epoch=features.epoch,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in features.levels.items()
        ),
    )


def _refusal(request: ApiVersionsRequest, context: RequestContext) -> ErrorCode:
    if context.api_version >= 3 and not (
        SOFTWARE.fullmatch(request.client_software_name) and SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ErrorCode.INVALID_REQUEST
    return _address_error(request, context)


def _address_error(request: ApiVersionsRequest, context: RequestContext) -> ErrorCode:
    """Return the error of a client that means another node: v5 names cluster and node, or neither (KIP-1242, BA-24)."""
    if request.cluster_id is None and request.node_id == NO_NODE:
        return ErrorCode.NONE
    if request.cluster_id is None or request.node_id < 0:
        return ErrorCode.INVALID_REQUEST
    if (request.cluster_id, request.node_id) != (context.cluster.cluster_id, context.node.node_id):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def endpoint(api_version: int, kafka_version: KafkaVersion, observations: Observations) -> Endpoint | None:
    """Return the endpoint of a version that the release does not serve; None: it serves this version.

    ApiVersions is the one API with a response to every version: in the layout of v0, with the error
    UNSUPPORTED_VERSION, after which the client sends an older version (BA-21). That is how clients negotiate,
    so the error is not reported.
    """
    if kafka_version.serves(API_VERSIONS, api_version):
        return None
    response = _unsupported_version(kafka_version)
    return Endpoint(
        api_version=api_version,
        decode=lambda frame, position, elements_max: (None,),  # the layout of the body is not known
        handle=lambda request, context: response,
        encode=registry.codec(API_VERSIONS, 0).encode_response,
        response_header_version=0,
        error_codes=lambda response: [],
    )


def _unsupported_version(kafka_version: KafkaVersion) -> ApiVersionsResponse:
    own_range = kafka_version.api_versions.get(API_VERSIONS)
    if own_range is None or not kafka_version.behavior(ApiVersionsBehavior).downgrade_lists_itself:
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=())
    low, high = own_range
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=(ApiVersion(api_key=API_VERSIONS, min_version=low, max_version=high),),
    )


@lru_cache(maxsize=16)
def _api_keys(kafka_version: KafkaVersion, *, has_receiver: bool) -> tuple[ApiVersion, ...]:
    """Return the APIs of a release, with those of client metrics if the broker receives them."""
    found = kafka_version.served if has_receiver else kafka_version.api_versions
    return tuple(
        ApiVersion(api_key=api_key, min_version=low, max_version=high) for api_key, (low, high) in found.items()
    )
