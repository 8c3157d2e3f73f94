"""The record batches that the coordinator writes to `__consumer_offsets`: one batch for each change.

Each function returns a batch of magic 2 with base offset 0 and leader epoch 0, which the log sets, and the number of
its records. The release decides which versions of keys and values it writes: `OffsetsLogBehavior`.
"""
