"""The records of Kafka's logs and of the `records` fields of its messages; bytes and values, no I/O.

Batches: `batches` reads batches of every message format version (magic). `record_batch` is magic 2, with `batch_header`
and `record`; `message_set` is magic 0 and 1; `control`, `compression`, `checksum` and `varint` are parts of them.

Topics: `offsets_topic` has the records of `__consumer_offsets` by type, declared in `offset_records`, `group_records`,
`consumer_group_records`, `share_group_records` and `streams_group_records`; `transaction_state` has the records of
`__transaction_state`, `share_group_state` those of `__share_group_state`; `coordinator` has what these topics share.
`partitioning` is which of their partitions has a group. `consumer_protocol` is what the members of a group send each
other.

Files: `segment` and `segment_files` are the formats of the files of a partition's log.

`record_construct` is the reference implementation of `record`, for tests.
"""
