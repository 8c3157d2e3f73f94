"""Consumer groups (KIP-848): the coordinator assigns the partitions, and each member reconciles itself by heartbeats.

Theory of operation. A group has three kinds of state, each with an epoch:

- its members and their subscriptions. A change of these, or of the subscribed topics, raises the group epoch;
- the target assignment, which an assignor of the coordinator computes for a group epoch (the assignment epoch);
- the current assignment of each member, with the member's epoch. A member goes to the epoch of the target in steps: it
  first revokes what it must give up (UNREVOKED_PARTITIONS), then gets what no other member has any more; while another
  member still has partitions of its target, it waits for them (UNRELEASED_PARTITIONS).

No request waits: each ConsumerGroupHeartbeat returns what the member has to own now. The modules::

    data             the state of a group, as immutable values
    group            a registered group: its data, and what follows from them
    requests         which heartbeats are invalid whatever the group is
    heartbeat        a member joins or stays: members, epoch, target assignment, current assignment
    leaving          a member leaves, or is removed because a deadline has passed
    classic_members  members that still use the classic protocol, during a migration
    upgrading, downgrading   a classic group becomes a consumer group, and the reverse
    reconciliation   the next current assignment of a member
    assignors        the target assignment: uniform and range
    records          what a change writes
    loading          a group from its records
    timers           the deadlines of members

A decision computes the group's next `GroupData` and changes nothing. `write` of `epoch_groups`, which has what streams
groups need too, applies them and appends the difference to the log. A group applies a change before the log has it, as
the next heartbeat of another member has to see it; a write that fails restores the data before it.

A broker imports this package when the first such group appears.
"""
