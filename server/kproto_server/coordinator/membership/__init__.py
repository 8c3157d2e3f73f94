"""The members of classic groups, and the rebalances that distribute partitions among them.

Theory of operation. A rebalance has two phases, and in each of them requests wait for each other:

1. PreparingRebalance: each member's JoinGroup is pending until all members have joined, or until the phase's deadline.
   Then a generation begins: all JoinGroups get their response, and the leader's response has the list of members.
2. CompletingRebalance: each member's SyncGroup is pending until the leader's SyncGroup brings the assignments, and
   these are written to the log. Then the group is Stable, until a member joins, leaves, or changes its protocols.

The modules and the events that they handle::

    join, static_members    JoinGroup            sync        SyncGroup
    heartbeat               Heartbeat            leave       LeaveGroup
    rebalance               the phases of a rebalance
    timers                  deadlines: of a phase, of a member's session, of an unused member id
    unloading               the coordinator's node stops, or all groups are dropped

They are functions of the coordinator, the event and the time. `state_machine` has the tables of states that they read.
A pending request is a `PendingResponse`, which its member keeps; a deadline is a value of the group or the member, and
`timers` schedules two timers for each group from these values. `records` writes to the log what survives a restart.
"""
