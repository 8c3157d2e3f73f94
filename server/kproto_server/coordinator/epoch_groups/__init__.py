"""What consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071) have in common.

The coordinator assigns the work, and each member reconciles itself by heartbeats with its epoch. The modules::

    group           a registered group: its data, and the log's; the deadlines of its members
    lookup          the member that a request names
    writing         the log has a change before its response
    records         the members of which a change writes records
    batches         the records of a change as one batch
    newest_records  the records of a group while a log is read
    deadlines       when members are removed
    assigning       the targets of large groups, computed in steps

A broker imports this package when the first such group appears.
"""
