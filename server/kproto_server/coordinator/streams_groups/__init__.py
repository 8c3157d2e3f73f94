"""Streams groups (KIP-1071): the coordinator assigns the tasks of a Kafka Streams application.

Theory of operation. The first member brings the topology of the application, which the group keeps. The coordinator
configures it: from the source topics that exist follow the partition counts of the internal topics, and the tasks, one
for each partition of a subtopology. Missing internal topics are created. Then the group works as a consumer group
(`consumer_groups`), with tasks instead of partitions: members and topics change the group epoch, an assignor computes
the target assignment, and each member goes there in steps. A task may be active on one member, and a standby task on
others. The members of one process share a state directory, so that no two of them have the same task in any role.

The modules::

    data            the state of a group, as immutable values
    group           a registered group: its data, and what follows from them
    requests        which heartbeats are invalid whatever the group is
    topology        the topology of a group, configured: tasks, internal topics
    partition_counts  the partition counts of internal topics
    heartbeat       a member joins or stays
    leaving         a member leaves, or is removed because a deadline has passed
    targets         when the target assignment is computed
    statuses, reported  what the response says besides the tasks
    assignor        the target assignment of the assignor `sticky`
    reconciliation  the next current assignment of a member
    endpoints       which partitions the endpoints of other members have
    records         what a change writes
    loading         a group from its records
    commits         commits with an older epoch
    descriptions    the topology as StreamsGroupDescribe returns it
    limits          the settings of a group
    timers          deadlines of members, and the initial rebalance delay

A broker imports this package when the first such group appears.
"""
