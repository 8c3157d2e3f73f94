"""CreateAcls (API key 30): an administrator adds ACLs (BA-120)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k30_create_acls import AclCreationResult, CreateAclsResponse
from kproto_server.handlers._acls import NO_AUTHORIZER, AclsBehavior
from kproto_server.security.acls import Acl

if TYPE_CHECKING:
    from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest
    from kproto_server.requests.context import RequestContext


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    behavior = context.behavior(AclsBehavior)
    failing = [behavior.fails_request(creation) for creation in request.creations]
    if context.cluster.authorizer is None:
        return _all(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    if any(failing):
        return _all(request, ErrorCode.UNKNOWN_SERVER_ERROR, None)
    faults = [behavior.fault(creation) for creation in request.creations]
    accepted = [_acl(one) for one, fault in zip(request.creations, faults, strict=True) if fault is None]
    if accepted:
        context.cluster.change_acls((*context.cluster.authorizer.acls, *accepted))
    return CreateAclsResponse(
        throttle_time_ms=0,
        results=tuple(
            AclCreationResult(error_code=ErrorCode.NONE, error_message=behavior.success_message)
            if fault is None
            else AclCreationResult(error_code=fault[0], error_message=fault[1])
            for fault in faults
        ),
    )


def _all(request: CreateAclsRequest, error: ErrorCode, message: str | None) -> CreateAclsResponse:
    return CreateAclsResponse(
        throttle_time_ms=0,
        results=(AclCreationResult(error_code=error, error_message=message),) * len(request.creations),
    )


def _acl(creation: AclCreation) -> Acl:
    return Acl(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )
