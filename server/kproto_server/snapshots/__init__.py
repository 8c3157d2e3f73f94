"""The whole state of a broker at a moment, as a value, and the way back to it.

Theory of operation. A `BrokerSnapshot` has what a test can see through clients: time, topics with their records,
offsets, groups, transactions, share partitions and changed configs. It has no connections and no members: afterwards
groups are as if all their members had left, and clients join again. `network.snapshots` resets the broker and then has
this package write all of it to the same logs as requests do. So memory and data directory have one way, and a snapshot
of one broker can be restored in another one.
"""
