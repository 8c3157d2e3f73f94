"""What the APIs of the share coordinator share: the states that a request names, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kproto.codes import ErrorCode
from kproto.jvm.arithmetic import java_uuid_hash
from kproto.jvm.hash_map import in_hash_order
from kproto_server.share_groups.share_states import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kproto_server.cluster.topics import Refusal
    from kproto_server.requests.context import RequestContext

P = TypeVar("P")
T = TypeVar("T")
P_contra = TypeVar("P_contra", contravariant=True)
T_co = TypeVar("T_co", covariant=True)

NEGATIVE_PARTITION = "The partition id cannot be a negative number."


class _StateTopic(Protocol):
    @property
    def topic_id(self) -> bytes: ...
    @property
    def partitions(self) -> Sequence[Any]: ...


class _MakeTopic(Protocol[P_contra, T_co]):
    def __call__(self, *, topic_id: bytes, partitions: tuple[P_contra, ...]) -> T_co: ...


class _MakePartition(Protocol[T_co]):
    def __call__(self, *, partition: int, error_code: int, error_message: str | None) -> T_co: ...


class StateResult:
    """The result for one state, complete when the log has settled everything appended so far."""

    __slots__ = ("error", "message")

    def __init__(self, error: int = 0, message: str | None = None) -> None:
        self.error: int = error
        self.message: str | None = (ErrorCode(error).message if error else None) if message is None else message

    def settle(self, error: int) -> None:
        if error:
            self.error, self.message = error, ErrorCode(error).message


class Handled(NamedTuple):
    """One state of a request, with its result."""

    topic_id: bytes
    partition: int
    result: StateResult


def handle_states(
    group_id: str,
    topics: Sequence[_StateTopic],
    context: RequestContext,
    action: str,
    refusal: Callable[[SharePartitionKey, Any], Refusal | None],
    do: Callable[[SharePartitionKey, Any, StateResult], object],
    *,
    needs_partitions: bool = True,
) -> list[Handled]:
    """Call ``do`` with each state that the node coordinates and its partition in the request; return all results.

    As in Kafka, nothing is done if anything is missing, and of a state that is named twice the last result counts.

    Args:
        action: what the request does, in the messages of errors of the coordinator.
        refusal: returns why one state is refused.
        needs_partitions: each topic has to have some.
    """
    if not group_id or not topics or (needs_partitions and not all(topic.partitions for topic in topics)):
        return []
    handled: dict[SharePartitionKey, StateResult] = {}
    for topic in topics:
        for partition in topic.partitions:
            key = SharePartitionKey(group_id, topic.topic_id, partition.partition)
            result = _refused(key, partition, context, action, refusal)
            if result is None:
                result = StateResult()
                do(key, partition, result)
            handled[key] = result
    return [Handled(key.topic_id, key.partition, result) for key, result in handled.items()]


def _refused(
    key: SharePartitionKey,
    partition: object,
    context: RequestContext,
    action: str,
    refusal: Callable[[SharePartitionKey, Any], Refusal | None],
) -> StateResult | None:
    error = context.share_groups.store.error_at(context.node, key)
    if error:
        return StateResult(error, f"Unable to {action}: {error.message}")
    if key.partition < 0:
        return StateResult(ErrorCode.INVALID_REQUEST, NEGATIVE_PARTITION)
    refused = refusal(key, partition)
    if refused is not None:
        return StateResult(refused.error, refused.message)
    topic = context.cluster.topic_by_id(key.topic_id)
    if topic is None or topic.partition(key.partition) is None:
        return StateResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return None


def _by_topic(handled: Sequence[Handled]) -> Iterator[tuple[bytes, list[Handled]]]:
    """Yield topic ids with the results of their partitions, in the order of Java's HashMap."""
    found: dict[bytes, dict[int, Handled]] = {}
    for one in handled:
        found.setdefault(one.topic_id, {})[one.partition] = one
    for topic_id in in_hash_order(found, java_uuid_hash):
        partitions = found[topic_id]
        yield topic_id, [partitions[index] for index in in_hash_order(partitions, lambda index: index)]


def results(handled: list[Handled], topic: _MakeTopic[P, T], partition: Callable[[Handled], P]) -> tuple[T, ...]:
    """Return the results of a response, by topic."""
    return tuple(
        topic(topic_id=topic_id, partitions=tuple(map(partition, found))) for topic_id, found in _by_topic(handled)
    )


def outcomes(handled: list[Handled], topic: _MakeTopic[P, T], partition: _MakePartition[P]) -> tuple[T, ...]:
    """Return the results of a response whose partitions have an error or none, by topic."""
    return results(
        handled,
        topic,
        lambda one: partition(partition=one.partition, error_code=one.result.error, error_message=one.result.message),
    )
