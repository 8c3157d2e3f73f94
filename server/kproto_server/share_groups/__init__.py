"""Share groups (KIP-932): their members, the records that members have acquired, and the state of share partitions.

Theory of operation. The group coordinator assigns partitions to members (`heartbeat`, `assignor`). The leader of a
partition loads the share partition of a group (`partitions`) and delivers its records to members (`sessions`,
`acquisition`), which acknowledge them (`share_partition`, `in_flight`). The share coordinator stores what was
acknowledged (`state_store`) in `__share_group_state`. `share_groups` has all of it for one process. The modules::

    group, data, members, group_settings    a registered group, its state, and its settings
    heartbeat, assignor                     a member joins, stays or leaves; the targets of members
    group_records, group_loading            what a change writes to `__consumer_offsets`, and the way back
    sessions                                which partitions a member fetches from a broker
    partitions, share_partition             share partitions in use, and what members do with their records
    in_flight, in_flight_records            records that were fetched and are not done with
    acquisition, log_batches                which records a fetch acquires
    dead_letters                            records that a group gives up
    state_store, share_states               the share coordinator, and its decisions
    records, pruning                        the records of `__share_group_state`, and which of them are deleted
"""
