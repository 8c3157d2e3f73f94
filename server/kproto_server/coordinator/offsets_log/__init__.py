"""What the coordinator writes to `__consumer_offsets`: one change, one record batch.

Each function returns a batch of magic 2 with base offset 0 and leader epoch 0, which whoever appends it sets, and the
number of its records. The release decides which versions of the records it has: `OffsetsLogBehavior`.
"""
