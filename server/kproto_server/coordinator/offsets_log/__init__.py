"""What the coordinator writes to `__consumer_offsets`: one change, one record batch.

Each function returns a batch of magic 2 with base offset 0 and leader epoch 0, which whoever appends it sets, and the
number of its records. What is in it is what the release's release writes: `kproto_server.releases.written_records`.
"""
