"""ListConfigResources (API key 74): the resources that may have configs (KIP-1142).

Source:
    Responses of 4.4.0: the types in the order below, and UNSUPPORTED_VERSION for an unknown type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.messages.k74_list_config_resources import ConfigResource, ListConfigResourcesResponse
from kproto_server.deferred import LargeResponse, array_of
from kproto_server.handlers._config_resources import ResourceType

if TYPE_CHECKING:
    from kproto.messages.k74_list_config_resources import ListConfigResourcesRequest
    from kproto_server.requests.context import RequestContext


SMALL_RESOURCES = 5000
"""Resources that are returned at once: about 10 ms. A response with more is made in slices."""


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse | LargeResponse:
    cluster = context.cluster
    nodes = [str(node.node_id) for node in cluster.alive_nodes()]
    names = {
        ResourceType.GROUP: in_hash_order(context.settings.groups, java_hash),
        ResourceType.CLIENT_METRICS: in_hash_order(context.settings.client_metrics, java_hash),
        ResourceType.BROKER_LOGGER: nodes,
        ResourceType.BROKER: nodes,
        ResourceType.TOPIC: list(cluster.topics),
    }
    wanted = set(request.resource_types) or set(names)
    if context.api_version == 0:
        wanted = {ResourceType.CLIENT_METRICS}
    if not wanted <= set(names):
        return ListConfigResourcesResponse(
            throttle_time_ms=0, error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=()
        )
    found = [(name, kind) for kind, of_kind in names.items() if kind in wanted for name in of_kind]
    is_large = len(found) > SMALL_RESOURCES
    resources = array_of(_resource, found, is_large=is_large)
    response = ListConfigResourcesResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, config_resources=resources)
    return LargeResponse(response) if is_large else response


def _resource(found: tuple[str, ResourceType]) -> ConfigResource:
    name, kind = found
    return ConfigResource(resource_name=name, resource_type=kind)
