"""DeleteAcls (API key 31): an administrator removes the ACLs that match filters (BA-120)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode
from kproto.messages.k31_delete_acls import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse
from kproto_server.handlers._acls import NO_AUTHORIZER, AclsBehavior, filter_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto.messages.k31_delete_acls import DeleteAclsRequest
    from kproto_server.requests.context import RequestContext
    from kproto_server.security.acls import Acl, AclFilter


COMPARISONS_MAX = 200_000
"""Filters times ACLs: about 80 ms. DEVIATION: a real broker has no limit."""


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    behavior = context.behavior(AclsBehavior)
    filters = [filter_of(asked, behavior) for asked in request.filters]
    authorizer = context.cluster.authorizer
    if authorizer is None:
        return DeleteAclsResponse(
            throttle_time_ms=0,
            filter_results=(_result(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER),) * len(request.filters),
        )
    left, results = dict.fromkeys(authorizer.acls), []
    if [one.only for one in filters].count(None) * len(left) > COMPARISONS_MAX:
        return DeleteAclsResponse(throttle_time_ms=0, filter_results=(TOO_MANY,) * len(filters))
    for one in filters:
        found = _selected(one, left)
        for acl in found:
            del left[acl]
        results.append(_result(ErrorCode.NONE, None, found))
    if len(left) < len(authorizer.acls):
        context.cluster.change_acls(left)
    return DeleteAclsResponse(throttle_time_ms=0, filter_results=tuple(results))


def _selected(one: AclFilter, acls: Mapping[Acl, None]) -> list[Acl]:
    only = one.only
    if only is None:
        return [acl for acl in acls if one.matches(acl)]
    return [only] if only in acls else []


def _result(error: ErrorCode, message: str | None, removed: list[Acl] | None = None) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        error_code=error, error_message=message, matching_acls=tuple(map(_removed, removed or ()))
    )


def _removed(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=ErrorCode.NONE,
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


TOO_MANY = _result(
    ErrorCode.POLICY_VIOLATION,
    "kproto compares filters that may select several ACLs with all of them, at most "
    f"{COMPARISONS_MAX} times in a request",
)
