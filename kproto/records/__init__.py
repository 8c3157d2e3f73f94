"""What stands in Kafka's logs and in the `records` fields of its messages; pure, like the rest of kproto.

`record_batch` and `message_set` are the two generations of batches, `batches` reads either. `offsets_topic` and
`transaction_state` are the coordinators' keys and values, `consumer_protocol` what group members tell each other.
"""
