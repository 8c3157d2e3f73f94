"""The bit fields ``..._authorized_operations`` of a broker without an authorizer: all operations (BA-36)."""

from __future__ import annotations

from functools import cached_property

from kproto_server.releases.release import VersionBehavior

NOT_REQUESTED = -(2**31)

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(
    3, 13
)


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


ON_TOPIC = _bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
ON_CLUSTER = _bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)


class AuthorizedOperationsBehavior(VersionBehavior):
    """What Kafka releases return as authorized operations."""

    @cached_property
    def unrequested(self) -> int:
        """The value for operations that the request does not ask for, in DescribeGroups and Metadata: 0 in 2.3 and 2.4,
        the first releases that have them, then the least int32 (BA-36; measured on 2.4.1 and 2.5.1)."""
        return NOT_REQUESTED if self.at_least(2, 5) else 0

    @cached_property
    def on_group(self) -> int:
        """All operations on a group: READ, DELETE and DESCRIBE, from 4.0 on also DESCRIBE_CONFIGS and ALTER_CONFIGS
        (measured on 3.9.2 and 4.4.0)."""
        operations = _bits(READ, DELETE, DESCRIBE)
        return operations | _bits(DESCRIBE_CONFIGS, ALTER_CONFIGS) if self.at_least(4, 0) else operations
