"""The content of partitions: what producers append and consumers read, in memory or on disk.

`precheck` and `validation` decide whether the records of a Produce request are accepted, `producers` whether their
sequence numbers are the next ones. `partition_data` has the records in memory, `stored_data` those on disk,
`conversion` the message sets for old consumers, `fetch_sessions` what each consumer fetches. `retention`
and `memory_compaction` delete records.
"""
