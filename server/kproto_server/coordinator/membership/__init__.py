"""Who is in a classic group, and the rebalances by which its members agree on who reads what.

Theory of operation. A group gathers (PreparingRebalance): every member's JoinGroup waits until all have joined, or the
time for it is over. Then a generation begins (CompletingRebalance): the joins are answered, the leader is told who is
there, and every member's SyncGroup waits for what the leader assigns. With that the group is Stable, until somebody
comes, goes, or wants something else. `machine` is the table of it, the other files are what happens at each event:

    join, static_members    JoinGroup            sync        SyncGroup
    heartbeat               Heartbeat, commits   leave       LeaveGroup
    rebalance               gather, begin a generation, begin anew
    timers                  members that are silent, gatherings that are over

They are plain functions of the broker's state, the event and the time. A request that waits is a `Reply`, which the
group holds until it knows the answer; a deadline is a value, on the group or on the member, and `timers` keeps one
timer for all of a group's members on the broker's clock. What has to outlive the broker goes through `records`.
"""
