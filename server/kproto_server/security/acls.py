"""ACLs as Kafka's authorizers have them (BA-122): bindings, filters, and what a principal may do.

An ACL allows or denies an operation on the resources of a pattern to a principal from a host. A DENY that matches
decides; otherwise any ALLOW that matches does. ``allow.everyone.if.no.acl.found`` decides on resources without an ACL.
Names and numbers are Kafka's. This module does no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""
WILDCARD = "*"
ANY_PRINCIPAL = "User:*"


class ResourceType(IntEnum):
    """What ACLs are about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a pattern stands for the names of resources; ANY and MATCH are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What a client does with a resource."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


IMPLYING: dict[Operation, tuple[Operation, ...]] = {
    Operation.DESCRIBE: (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER),
    Operation.DESCRIBE_CONFIGS: (Operation.ALTER_CONFIGS,),
}
"""Operations whose ALLOW also allows the key."""


SOME_NAME = "hardcode"
"""The name that KRaft's authorizer looks up for a right on any resource."""
ANY_VALUES = frozenset({int(ResourceType.ANY), int(Operation.ANY), int(Permission.ANY)})
"""The number by which a filter selects all types, operations and permissions: the same for all three."""


class Acl(NamedTuple):
    """One ACL with its pattern: Kafka's AclBinding."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def covers(self, name: str) -> bool:
        """Return whether the pattern has the resource of this name, of the pattern's type."""
        if self.pattern_type == PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)

    def is_for(self, principal: str, host: str) -> bool:
        """Return whether the ACL is about a principal at a host."""
        return self.principal in (principal, ANY_PRINCIPAL) and self.host in (host, WILDCARD)


ByPrincipal = dict[str, list[Acl]]


class AclFilter(NamedTuple):
    """Selects ACLs; None and ANY select all."""

    resource_type: int = ResourceType.ANY
    name: str | None = None
    pattern_type: int = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = Operation.ANY
    permission: int = Permission.ANY

    @property
    def only(self) -> Acl | None:
        """The only ACL that the filter selects; None: it may select several."""
        is_one = self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED) and ANY_VALUES.isdisjoint(
            (self.resource_type, self.operation, self.permission)
        )
        if not is_one or self.name is None or self.principal is None or self.host is None:
            return None
        return Acl(
            self.resource_type, self.name, self.pattern_type, self.principal, self.host, self.operation, self.permission
        )

    def matches(self, acl: Acl) -> bool:
        """Return whether the filter selects an ACL."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None:
            return True
        return acl.covers(self.name) if self.pattern_type == PatternType.MATCH else acl.name == self.name


class _AclsOfType:
    """The ACLs of one resource type. A check takes time by the ACLs of its resource, and not by all that there are."""

    __slots__ = ("_literal", "_prefix_lengths", "_prefixed", "acls")

    def __init__(self) -> None:
        self.acls: list[Acl] = []
        self._literal: dict[str, ByPrincipal] = {}
        """By the name of the pattern."""
        self._prefixed: dict[str, ByPrincipal] = {}
        self._prefix_lengths: set[int] = set()

    def add(self, acl: Acl) -> None:
        """Add an ACL of the type."""
        self.acls.append(acl)
        is_prefixed = acl.pattern_type == PatternType.PREFIXED
        by_name = self._prefixed if is_prefixed else self._literal
        by_name.setdefault(acl.name, {}).setdefault(acl.principal, []).append(acl)
        if is_prefixed:
            self._prefix_lengths.add(len(acl.name))

    def on_resource(self, name: str) -> list[ByPrincipal]:
        """Return the ACLs whose pattern has the resource of a name, by principal."""
        names = dict.fromkeys((name, WILDCARD))
        found = [self._literal[one] for one in names if one in self._literal]
        for length in self._prefix_lengths:
            by_principal = self._prefixed.get(name[:length]) if length <= len(name) else None
            if by_principal is not None:
                found.append(by_principal)
        return found


class Authorizer:
    """The ACLs of a cluster, and what they allow."""

    def __init__(
        self, super_users: Iterable[str] = (), *, allows_without_acls: bool = False, is_standard: bool = False
    ) -> None:
        """``super_users``: principals that may do everything; ``allows_without_acls``: whether all may use resources
        for which there is no ACL; ``is_standard``: whether it is KRaft's authorizer."""
        self.super_users: frozenset[str] = frozenset(super_users)
        self._allows_without_acls = allows_without_acls
        self._is_standard = is_standard
        self._acls: dict[Acl, None] = {}
        self._by_type: dict[int, _AclsOfType] = {}

    @property
    def acls(self) -> tuple[Acl, ...]:
        """All ACLs, the oldest first."""
        return tuple(self._acls)

    def replace(self, acls: Iterable[Acl]) -> None:
        """Have these ACLs and no others."""
        self._acls = dict.fromkeys(acls)
        self._by_type = {}
        for acl in self._acls:
            self._by_type.setdefault(acl.resource_type, _AclsOfType()).add(acl)

    def add(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; those that exist stay as they are."""
        self.replace((*self._acls, *acls))

    def remove(self, matches: Callable[[Acl], bool]) -> list[Acl]:
        """Remove the ACLs that match; return them."""
        removed = [acl for acl in self._acls if matches(acl)]
        if removed:
            gone = set(removed)
            self.replace(acl for acl in self._acls if acl not in gone)
        return removed

    def allows(self, principal: str, host: str, operation: int, resource_type: int, name: str) -> bool:
        """Return whether a principal at a host may do an operation on a resource."""
        if principal in self.super_users:
            return True
        of_type = self._by_type.get(resource_type)
        on_resource = [] if of_type is None else of_type.on_resource(name)
        if not on_resource:
            return self._allows_without_acls
        operations = (operation, Operation.ALL)
        implying = (*operations, *IMPLYING.get(Operation(operation), ()))
        is_allowed = False
        for by_principal in on_resource:
            for acl in (*by_principal.get(principal, ()), *by_principal.get(ANY_PRINCIPAL, ())):
                if acl.host not in (host, WILDCARD):
                    continue
                if acl.permission == Permission.DENY and acl.operation in operations:
                    return False
                is_allowed = is_allowed or (acl.permission == Permission.ALLOW and acl.operation in implying)
        return is_allowed

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Return whether there may be a resource of a type on which a principal may do an operation (KIP-679).

        As in Kafka: the operation of an ACL counts, and none that implies it; an ALLOW counts unless a DENY has the
        same name, a prefix of it, or all names.
        """
        if principal in self.super_users:
            return True
        of_type = self._by_type.get(resource_type)
        own = [
            acl
            for acl in (() if of_type is None else of_type.acls)
            if acl.is_for(principal, host) and acl.operation in (operation, Operation.ALL)
        ]
        denials = [acl for acl in own if acl.permission == Permission.DENY]
        if any(_is_wildcard(acl) for acl in denials):
            return False
        denied = _DeniedNames(denials)
        allows_other = self._allows_without_acls
        if allows_other and self._is_standard:
            allows_other = self.allows(principal, host, operation, resource_type, SOME_NAME)
        return allows_other or any(
            acl.permission == Permission.ALLOW and (_is_wildcard(acl) or not denied.has_all_of(acl)) for acl in own
        )


def _is_wildcard(acl: Acl) -> bool:
    return acl.pattern_type == PatternType.LITERAL and acl.name == WILDCARD


class _DeniedNames:
    """The names that some ACLs deny, and the prefixes of names.

    The prefixes are sorted, and none begins with another one. So the last that is not behind a name is the only one
    that the name may begin with.
    """

    __slots__ = ("_literal", "_prefixes")

    def __init__(self, denials: list[Acl]) -> None:
        self._literal: set[str] = {one.name for one in denials if one.pattern_type != PatternType.PREFIXED}
        self._prefixes: list[str] = []
        for prefix in sorted(one.name for one in denials if one.pattern_type == PatternType.PREFIXED):
            if not self._has_prefix_of(prefix):
                self._prefixes.append(prefix)

    def has_all_of(self, allowed: Acl) -> bool:
        """Return whether all names of an ACL's pattern are denied."""
        is_literal = allowed.pattern_type == PatternType.LITERAL
        return (is_literal and allowed.name in self._literal) or self._has_prefix_of(allowed.name)

    def _has_prefix_of(self, name: str) -> bool:
        index = bisect_right(self._prefixes, name)
        return index > 0 and name.startswith(self._prefixes[index - 1])


def parse_super_users(text: str) -> Iterator[str]:
    """Yield the principals of the setting ``super.users``: ``Type:name``, with semicolons between them.

    Raises:
        ValueError: one is no principal.
    """
    for one in filter(None, (part.strip() for part in text.split(";"))):
        if not all(one.partition(":")):
            raise ValueError(f"{one!r} is no principal: write User:name")
        yield one
