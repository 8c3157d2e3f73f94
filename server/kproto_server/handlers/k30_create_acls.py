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


ACLS_MAX = 10_000
NAMES_MAX = 10_000
TOO_MANY = (
    ErrorCode.POLICY_VIOLATION,
    f"kproto has at most {ACLS_MAX} ACLs, and {NAMES_MAX} characters of the name, principal and host of one",
)


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    behavior = context.behavior(AclsBehavior)
    failures = [behavior.failure(creation) for creation in request.creations]
    if context.cluster.authorizer is None:
        return _all(request, ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
    failure = next((one for one in failures if one is not None), None)
    if failure is not None:
        return _all(request, ErrorCode.UNKNOWN_SERVER_ERROR, failure if behavior.says_why_request_fails else None)
    faults = [_size_fault(creation) or behavior.fault(creation) for creation in request.creations]
    accepted = [_acl(one) for one, fault in zip(request.creations, faults, strict=True) if fault is None]
    if accepted:
        acls = dict.fromkeys((*context.cluster.authorizer.acls, *accepted))
        if len(acls) > ACLS_MAX:
            return _all(request, *TOO_MANY)
        context.cluster.change_acls(acls)
    return CreateAclsResponse(
        throttle_time_ms=0,
        results=tuple(
            AclCreationResult(error_code=ErrorCode.NONE, error_message=behavior.success_message)
            if fault is None
            else AclCreationResult(error_code=fault[0], error_message=fault[1])
            for fault in faults
        ),
    )


def _size_fault(creation: AclCreation) -> tuple[ErrorCode, str] | None:
    size = len(creation.resource_name) + len(creation.principal) + len(creation.host)
    return TOO_MANY if size > NAMES_MAX else None


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
