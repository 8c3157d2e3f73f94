"""The error codes that clients get when a write to the offsets topic has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.codes import ErrorCode

if TYPE_CHECKING:
    from kproto_server.coordinator.version_behavior import CoordinatorBehavior

_COMMON = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
_COMMON_OF_OLD = {**_COMMON, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE}
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_FETCH_SIZE)

_OLD_COMMIT_ERRORS = {**_COMMON_OF_OLD, **dict.fromkeys(_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE)}
_NEW_COMMIT_ERRORS = {
    **_COMMON,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
}
_OLD_GROUP_ERRORS = {
    **_COMMON_OF_OLD,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    **dict.fromkeys(_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
}
_NEW_GROUP_ERRORS = {**_OLD_GROUP_ERRORS, ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE}


def commit_write_error(log_error: int, behavior: CoordinatorBehavior) -> int:
    """Return the error code of a commit or deletion whose write has failed (OC-35)."""
    code = ErrorCode(log_error)
    return (_NEW_COMMIT_ERRORS if behavior.is_new_coordinator else _OLD_COMMIT_ERRORS).get(code, code)


def group_write_error(log_error: int, behavior: CoordinatorBehavior) -> int:
    """Return the error code of the members whose group's write has failed (GP-33)."""
    code = ErrorCode(log_error)
    return (_NEW_GROUP_ERRORS if behavior.is_new_coordinator else _OLD_GROUP_ERRORS).get(code, code)
