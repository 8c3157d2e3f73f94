"""The next current assignment of a member, on its way to the target assignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kproto_server.coordinator.consumer_groups.data import NO_PARTITIONS, MemberState, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kproto_server.coordinator.consumer_groups.data import Assignment, ConsumerMember, PartitionEpochs


class Step(NamedTuple):
    """What the next step of a member depends on."""

    target: Assignment
    assignment_epoch: int
    """The epoch of the target."""
    owned: Assignment | None
    """The partitions that the member says it owns; None: it does not say."""
    owners: Mapping[bytes, Mapping[int, str]]
    """The members that own the partitions (`ConsumerGroup.owners`)."""
    topic_ids: frozenset[bytes] | None = None
    """The topics that the member subscribes to: it gives up all others, even those of its target. None: it keeps them
    as long as they are in its target, up to 4.1."""
    has_new_subscription: bool = False
    """Whether the member's subscription has just changed, so that its target may be older."""
    keeps_revoked: bool = True
    """Whether the member may keep partitions that it has to revoke."""


def reconcile(member: ConsumerMember, step: Step) -> ConsumerMember:
    """Return the member after its next step towards the target; the same object if it can take none."""
    trims = step.has_new_subscription and step.topic_ids is not None
    match member.state:
        case MemberState.STABLE if member.epoch == step.assignment_epoch:
            return _trimmed(member, step) if trims else member
        case MemberState.UNREVOKED_PARTITIONS if _owns_any(member.revoking, step.owned):
            return _trimmed(member, step) if trims else member
        case MemberState.UNREVOKED_PARTITIONS if step.topic_ids is None:
            return _next(member, member.epoch + 1, step)
        case MemberState.UNKNOWN:
            return _next(member, step.assignment_epoch, step)
        case _:
            return _next(member, member.epoch, step)


def _trimmed(member: ConsumerMember, step: Step) -> ConsumerMember:
    """Return the member without the topics that it no longer subscribes to."""
    topic_ids = step.topic_ids or frozenset()
    gone = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id not in topic_ids}
    if not gone:
        return member
    kept = {topic_id: indexes for topic_id, indexes in member.assigned.items() if topic_id in topic_ids}
    revoking = dict(member.revoking)
    for topic_id, indexes in gone.items():
        revoking[topic_id] = revoking.get(topic_id, NO_PARTITIONS) | indexes
    if _owns_any(revoking, step.owned):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, revoking)
    return _moved(member, member.state, member.epoch, kept, member.revoking)


def _owns_any(revoking: Assignment, owned: Assignment | None) -> bool:
    """Return whether the member still has partitions that it has to revoke; it has if it does not say."""
    if owned is None:
        return True
    return any(not revoking.get(topic_id, NO_PARTITIONS).isdisjoint(indexes) for topic_id, indexes in owned.items())


def _next(member: ConsumerMember, epoch: int, step: Step) -> ConsumerMember:
    kept: Assignment = {}
    revoking: Assignment = {}
    added: Assignment = {}
    waits = False
    for topic_id in {**step.target, **member.assigned}:
        wanted = step.target.get(topic_id, NO_PARTITIONS)
        if step.topic_ids is not None and topic_id not in step.topic_ids:
            wanted = NO_PARTITIONS
        current = member.assigned.get(topic_id, NO_PARTITIONS)
        if stays := current & wanted:
            kept[topic_id] = stays
        if goes := current - wanted:
            revoking[topic_id] = goes
        missing = wanted - current
        free = missing.difference(step.owners.get(topic_id, NO_PARTITIONS))
        if step.keeps_revoked:
            free |= missing & member.revoking.get(topic_id, NO_PARTITIONS)
        waits = waits or len(free) < len(missing)
        if free:
            added[topic_id] = free
    if revoking and _owns_any(revoking, step.owned):
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, epoch, kept, revoking)
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    assigned = {topic_id: kept.get(topic_id, NO_PARTITIONS) | free for topic_id, free in added.items()}
    return _moved(member, state, step.assignment_epoch, {**kept, **assigned}, {}, kept)


def _moved(
    member: ConsumerMember,
    state: MemberState,
    epoch: int,
    assigned: Assignment,
    revoking: Assignment,
    kept: Assignment | None = None,
) -> ConsumerMember:
    """Return the member in a state, which it may be in already.

    ``kept``: what it had of ``assigned``; by default all.
    """
    is_same = (
        state is member.state
        and epoch == member.epoch
        and member.previous_epoch == member.epoch
        and assigned == member.assigned
        and revoking == member.revoking
    )
    if is_same:
        return member
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking=revoking,
        partition_epochs=partition_epochs(
            epochs_of(member.partition_epochs, assigned if kept is None else kept, revoking), assigned, revoking, epoch
        ),
    )


def epochs_of(epochs: PartitionEpochs, *assignments: Assignment) -> PartitionEpochs:
    """Return the epochs of the partitions of assignments."""
    found: PartitionEpochs = {}
    for assignment in assignments:
        for topic_id in assignment.keys() & epochs.keys():
            known = epochs[topic_id]
            found.setdefault(topic_id, {}).update(
                {index: known[index] for index in assignment[topic_id] & known.keys()}
            )
    return found


def partition_epochs(
    before: PartitionEpochs, assigned: Assignment, revoking: Assignment, epoch: int
) -> PartitionEpochs:
    """Return the epochs of a member's partitions; those that it did not have before get a new one.

    ``before``: the epochs of some of these partitions.
    """
    epochs: PartitionEpochs = {}
    for assignment in (assigned, revoking):
        for topic_id, indexes in assignment.items():
            epochs.setdefault(topic_id, {}).update(dict.fromkeys(indexes, epoch))
    for topic_id, known in before.items():
        epochs[topic_id].update(known)
    return epochs
