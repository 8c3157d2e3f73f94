"""The log of an offsets partition, back into offsets and groups (LF-30 to LF-38).

Theory of operation. `load.PartitionLoad` takes the bytes of the log and goes through its batches in small steps, so
that a broker can serve other partitions meanwhile. `replay` is what every record means, the plain path. Most of a log
is the same commits again and again, each in place of the one before: `shapes` recognizes those without decoding them,
by the `layouts` of their octets, and only the last of each is decoded. What a log says of groups is gathered in
`restored_groups`; `sessions` gives their members time to come back.
"""
