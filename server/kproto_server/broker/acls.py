"""The ACLs of a running broker, as a test reads and changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto.errors import UsageError
from kproto.messages.k30_create_acls import AclCreation, CreateAclsRequest
from kproto.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kproto_server.broker.own_requests import ask, check
from kproto_server.security.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType

if TYPE_CHECKING:
    from enum import IntEnum

    from kproto_server.broker.thread import RunInBrokerThread
    from kproto_server.network.server import Server
    from kproto_server.security.acls import Acl, Authorizer

VERSION = 3
"""The newest version of the requests."""


class AclDescription(NamedTuple):
    """One ACL, in Kafka's names."""

    principal: str
    operation: str
    resource_type: str
    name: str = CLUSTER_NAME
    permission: str = "ALLOW"
    host: str = "*"
    pattern_type: str = "LITERAL"


class BrokerAcls:
    """The ACLs of a running broker that has an authorizer (``authorizer.class.name``)."""

    def __init__(self, run: RunInBrokerThread) -> None:
        self._run = run

    def describe(self) -> tuple[AclDescription, ...]:
        """Return all ACLs, the oldest first.

        Raises:
            UsageError: the broker has no authorizer.
        """
        return self._run(lambda server: tuple(map(_description, _authorizer(server).acls)))

    def add(
        self,
        principal: str,
        operation: str,
        resource_type: str,
        name: str = CLUSTER_NAME,
        *,
        permission: str = "ALLOW",
        host: str = "*",
        pattern_type: str = "LITERAL",
    ) -> None:
        """Add an ACL, for requests from now on; one that exists stays as it is.

        Args:
            principal: such as ``User:alice``, or ``User:*``.
            operation: READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, ... or ALL.
            resource_type: TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, ...
            name: the resource, a prefix with ``pattern_type="PREFIXED"``, or ``*``.
            permission: ALLOW or DENY.
            host: the address of clients, or ``*``.
            pattern_type: LITERAL or PREFIXED.

        Raises:
            UsageError: the broker has no authorizer, or there is no such operation, resource type or the like.
            RequestRefused: the broker does not take the ACL.
        """
        creation = creation_of(
            AclDescription(principal, operation, resource_type, name, permission, host, pattern_type)
        )

        def create(server: Server) -> None:
            _authorizer(server)
            (result,) = ask(server, CreateAclsRequest(creations=(creation,)), VERSION).results
            check(f"ACL of {principal}", result.error_code, result.error_message)

        self._run(create)

    def remove(
        self,
        principal: str | None = None,
        operation: str | None = None,
        resource_type: str | None = None,
        name: str | None = None,
        *,
        permission: str | None = None,
        host: str | None = None,
        pattern_type: str | None = None,
    ) -> int:
        """Remove the ACLs that have all of these values, and return how many they were; without values all.

        Raises:
            UsageError: the broker has no authorizer, or there is no such operation, resource type or the like.
        """
        asked = DeleteAclsFilter(
            resource_type_filter=_number(ResourceType, resource_type or "ANY"),
            resource_name_filter=name,
            pattern_type_filter=_number(PatternType, pattern_type or "ANY"),
            principal_filter=principal,
            host_filter=host,
            operation=_number(Operation, operation or "ANY"),
            permission_type=_number(Permission, permission or "ANY"),
        )

        def delete(server: Server) -> int:
            _authorizer(server)
            (result,) = ask(server, DeleteAclsRequest(filters=(asked,)), VERSION).filter_results
            check("ACLs", result.error_code, result.error_message)
            return len(result.matching_acls)

        return self._run(delete)


def creation_of(described: AclDescription) -> AclCreation:
    """Return an ACL as CreateAcls has it.

    Raises:
        UsageError: there is no such operation, resource type or the like.
    """
    return AclCreation(
        resource_type=_number(ResourceType, described.resource_type),
        resource_name=described.name,
        resource_pattern_type=_number(PatternType, described.pattern_type),
        principal=described.principal,
        host=described.host,
        operation=_number(Operation, described.operation),
        permission_type=_number(Permission, described.permission),
    )


def _authorizer(server: Server) -> Authorizer:
    authorizer = server.state.cluster.authorizer
    if authorizer is None:
        raise UsageError("this broker has no authorizer, and so no ACLs: set authorizer.class.name at its start")
    return authorizer


def _number(names: type[IntEnum], name: str) -> int:
    found = names.__members__.get(name)
    if not found:  # UNKNOWN is 0
        raise UsageError(f"{name!r} is none of {', '.join(one.name for one in names if one)}")
    return found.value


def _description(acl: Acl) -> AclDescription:
    return AclDescription(
        acl.principal,
        Operation(acl.operation).name,
        ResourceType(acl.resource_type).name,
        acl.name,
        Permission(acl.permission).name,
        acl.host,
        PatternType(acl.pattern_type).name,
    )
