"""DescribeAcls (API key 29): the ACLs that match a filter (BA-120)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k29_describe_acls import AclDescription, DescribeAclsResource, DescribeAclsResponse
from kproto_server.handlers._acls import AclsBehavior, filter_of

if TYPE_CHECKING:
    from kproto.messages.k29_describe_acls import DescribeAclsRequest
    from kproto_server.requests.context import RequestContext


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    behavior = context.behavior(AclsBehavior)
    asked = filter_of(request, behavior)
    authorizer = context.cluster.authorizer
    if authorizer is None:
        message = "No Authorizer is configured on the broker"
        return DescribeAclsResponse(
            throttle_time_ms=0, error_code=ErrorCode.SECURITY_DISABLED, error_message=message, resources=()
        )
    by_pattern: dict[tuple[int, str, int], list[AclDescription]] = {}
    for acl in filter(asked.matches, authorizer.acls):
        described = AclDescription(
            principal=acl.principal, host=acl.host, operation=acl.operation, permission_type=acl.permission
        )
        by_pattern.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(described)
    return DescribeAclsResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=behavior.success_message,
        resources=tuple(
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern_type, acls=tuple(acls))
            for (kind, name, pattern_type), acls in by_pattern.items()
        ),
    )
