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
    """What Kafka releases do differently with ACLs (measured on 2.0.1, 2.8.2 and 4.4.0; 2.5 is the first release whose
    requests for ACLs come from Kafka's message generator)."""

    @cached_property
    def is_generated(self) -> bool:
        """Whether unknown codes close the connection, and codes that only filters have fail a request; before it is the
        other way round. Messages of success are empty instead of null."""
        return self.at_least(2, 5)

    @cached_property
    def success_message(self) -> str | None:
        """The error message of a response without an error."""
        return "" if self.is_generated else None

    @cached_property
    def has_resource_type_user(self) -> bool:
        """Whether there are ACLs on users (KIP-373)."""
        return self.at_least(3, 3)

    def closes_on(self, pattern_type: int, *codes: int) -> bool:
        """Return whether a filter or an ACL with these codes of resource type, operation and permission closes the
        connection."""
        return self.is_generated and UNKNOWN in (pattern_type, *codes)

    def fails_request(self, creation: AclCreation) -> bool:
        """Return whether an ACL fails all ACLs of its request.

        Raises:
            CloseConnection: it closes the connection instead.
        """
        codes = creation.resource_type, creation.operation, creation.permission_type
        if self.closes_on(creation.resource_pattern_type, *codes):
            raise CloseConnection(
                "CreateAcls: an ACL has an unknown resource type, pattern type, operation or permission"
            )
        any_of_filters = ResourceType.ANY in codes or creation.resource_pattern_type in (
            PatternType.ANY,
            PatternType.MATCH,
        )
        if any_of_filters and not self.is_generated:
            raise CloseConnection(
                "CreateAcls: an ACL has a resource type, pattern type, operation or permission of filters"
            )
        return any_of_filters or (
            self.is_generated and not self.is_kraft and not all(creation.principal.partition(":")[1:2])
        )

    def fault(self, creation: AclCreation) -> Fault | None:
        """Return why an ACL is refused."""
        found = None if self.is_generated else self._unparsed(creation)
        if found is None:
            found = _wrong_name(creation)
        if found is None and self.is_generated:
            found = self._invalid(creation)
        return None if found is None else (ErrorCode.INVALID_REQUEST, found)

    def _unparsed(self, creation: AclCreation) -> str | None:
        if not _has(ResourceType, creation.resource_type, below=ResourceType.USER):
            return f"UNKNOWN not a valid resourceType name. The valid names are {LISTED_RESOURCE_TYPES}"
        if not UNKNOWN < creation.resource_pattern_type <= PatternType.PREFIXED:
            return "patternType must not be UNKNOWN"
        if ":" not in creation.principal:
            return f"expected a string in format principalType:principalName but got {creation.principal}"
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
            if not 0 <= code < end
        ]
        if not self.is_kraft:
            return "Failed to create ACL" if unknown else None
        if unknown:
            return f"Invalid {unknown[0]} UNKNOWN"
        if ":" not in creation.principal:
            reason = "no colon is present separating the principal type from the principal name"
            return f"Could not parse principal from `{creation.principal}` ({reason})"
        return None if creation.host else "Host pattern cannot be null or empty"


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
    codes = asked.resource_type_filter, asked.operation, asked.permission_type
    if behavior.closes_on(asked.pattern_type_filter, *codes):
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
