"""What CreateAcls, DescribeAcls and DeleteAcls have in common: the rules of the authorizers for what clients send."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from kproto.codes import ErrorCode
from kproto_server.deferred import CloseConnection
from kproto_server.releases.release import VersionBehavior
from kproto_server.security.acls import CLUSTER_NAME, AclFilter, Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from kproto.messages.k29_describe_acls import DescribeAclsRequest
    from kproto.messages.k30_create_acls import AclCreation
    from kproto.messages.k31_delete_acls import DeleteAclsFilter

UNKNOWN = 0
NO_AUTHORIZER = "No Authorizer is configured."
LISTED_RESOURCE_TYPES = "Topic,Group,Cluster,TransactionalId,DelegationToken"
LISTED_OPERATIONS = (
    "Read,Write,Create,Delete,Alter,Describe,ClusterAction,AlterConfigs,DescribeConfigs,IdempotentWrite,All"
)

Fault = tuple[ErrorCode, str]


class AclsBehavior(VersionBehavior):
    """What Kafka releases do differently with ACLs (measured on 2.0.1, 2.1.1, 2.3.1 to 2.8.2, 3.0.2 and 4.4.0; 2.5 is
    the first release whose requests for ACLs come from Kafka's message generator)."""

    @cached_property
    def has_acl_authorizer(self) -> bool:
        """Whether AclAuthorizer refuses ACLs, without saying why: from 2.4 on, before SimpleAclAuthorizer."""
        return self.at_least(2, 4)

    @cached_property
    def is_generated(self) -> bool:
        """Whether unknown codes of an ACL close the connection, and codes that only filters have fail a request; before
        it is the other way round. Messages of success are empty instead of null."""
        return self.at_least(2, 5)

    @cached_property
    def says_why_request_fails(self) -> bool:
        """Whether the results of a request that one ACL fails have a message."""
        return not self.at_least(2, 6)

    @cached_property
    def reads_unknown_filters(self) -> bool:
        """Whether a filter with an unknown code, which finds nothing, is read; otherwise it closes the connection."""
        return not self.at_least(2, 8)

    @cached_property
    def checks_principals(self) -> bool:
        """Whether KRaft refuses a principal without a type: from 3.9 on (measured on 3.3.2, 3.7.2, 3.8.1 and 3.9.2)."""
        return self.at_least(3, 9)

    @cached_property
    def checks_hosts(self) -> bool:
        """Whether KRaft refuses an empty host: from 4.4 on (measured on 3.9.2, 4.0.2 to 4.3.1 and 4.4.0)."""
        return self.at_least(4, 4)

    @cached_property
    def success_message(self) -> str | None:
        """The error message of a response without an error."""
        return "" if self.is_generated else None

    @cached_property
    def has_resource_type_user(self) -> bool:
        """Whether there are ACLs on users (KIP-373)."""
        return self.at_least(3, 3)

    def failure(self, creation: AclCreation) -> str | None:
        """Return why an ACL fails all ACLs of its request; None if it does not.

        Raises:
            CloseConnection: it closes the connection instead.
        """
        codes = {
            "resourceType": creation.resource_type,
            "patternType": creation.resource_pattern_type,
            "operation": creation.operation,
            "permissionType": creation.permission_type,
        }
        if self.is_generated and UNKNOWN in codes.values():
            raise CloseConnection(
                "CreateAcls: an ACL has an unknown resource type, pattern type, operation or permission"
            )
        of_filters = [f"{name} must not be ANY" for name, code in codes.items() if code == ResourceType.ANY]
        if creation.resource_pattern_type == PatternType.MATCH:
            of_filters.append("patternType must not be MATCH")
        if of_filters and not self.is_generated:
            raise CloseConnection(
                "CreateAcls: an ACL has a resource type, pattern type, operation or permission of filters"
            )
        if of_filters:
            return of_filters[0]
        if self.has_acl_authorizer and not self.is_kraft and ":" not in creation.principal:
            return f"java.lang.IllegalArgumentException: {_without_type(creation.principal)}"
        return None

    def fault(self, creation: AclCreation) -> Fault | None:
        """Return why an ACL is refused."""
        found = None if self.has_acl_authorizer else self._unparsed(creation)
        if found is None:
            found = _wrong_name(creation)
        if found is None and self.has_acl_authorizer:
            found = self._invalid(creation)
        return None if found is None else (ErrorCode.INVALID_REQUEST, found)

    def _unparsed(self, creation: AclCreation) -> str | None:
        if not _has(ResourceType, creation.resource_type, below=ResourceType.USER):
            return f"UNKNOWN not a valid resourceType name. The valid names are {LISTED_RESOURCE_TYPES}"
        if not UNKNOWN < creation.resource_pattern_type <= PatternType.PREFIXED:
            return "patternType must not be UNKNOWN"
        if ":" not in creation.principal:
            return _without_type(creation.principal)
        if not _has(Operation, creation.operation, below=Operation.CREATE_TOKENS):
            return f"UNKNOWN not a valid operation name. The valid names are {LISTED_OPERATIONS}"
        if not _has(Permission, creation.permission_type, below=len(Permission)):
            return "UNKNOWN not a valid permissionType name. The valid names are Allow,Deny"
        return None

    def _invalid(self, creation: AclCreation) -> str | None:
        types = len(ResourceType) if self.has_resource_type_user else ResourceType.USER
        unknown = [
            name
            for name, code, end in (
                ("resourceType", creation.resource_type, types),
                ("patternType", creation.resource_pattern_type, len(PatternType)),
                ("operation", creation.operation, len(Operation)),
                ("permissionType", creation.permission_type, len(Permission)),
            )
            if not UNKNOWN < code < end
        ]
        if not self.is_kraft:
            return "Failed to create ACL" if unknown else None
        if unknown:
            return f"Invalid {unknown[0]} UNKNOWN"
        if self.checks_principals and ":" not in creation.principal:
            reason = "no colon is present separating the principal type from the principal name"
            return f"Could not parse principal from `{creation.principal}` ({reason})"
        return "Host pattern cannot be null or empty" if self.checks_hosts and not creation.host else None


def _without_type(principal: str) -> str:
    return f"expected a string in format principalType:principalName but got {principal}"


def _has(enumeration: Any, code: int, *, below: int) -> bool:
    return UNKNOWN < code < min(len(enumeration), below)


def _wrong_name(creation: AclCreation) -> str | None:
    if creation.resource_type == ResourceType.CLUSTER and creation.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    return None if creation.resource_name else "Invalid empty resource name"


def filter_of(asked: DescribeAclsRequest | DeleteAclsFilter, behavior: AclsBehavior) -> AclFilter:
    """Return the filter that a client has sent.

    Raises:
        CloseConnection: the release closes the connection on it.
    """
    codes = asked.resource_type_filter, asked.pattern_type_filter, asked.operation, asked.permission_type
    if UNKNOWN in codes and not behavior.reads_unknown_filters:
        raise CloseConnection("a filter of ACLs has an unknown resource type, pattern type, operation or permission")
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )
