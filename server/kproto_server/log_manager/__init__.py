"""The logs of all topics, and what goes through them: one log manager for all nodes.

`log_manager` has the logs, the limit on memory and the fetch sessions of each node. `retention_task` deletes expired
records and producers, `memory_cleaner` compacts topics in memory, `markers` appends the markers that end transactions,
and `in_sync_replicas` says whether a partition has enough replicas for a write.
"""
