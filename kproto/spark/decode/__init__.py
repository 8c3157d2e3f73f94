"""Log bytes to Arrow batches, without Spark: numpy and pyarrow alone (extra ``kproto[spark]``).

`blocks` cuts a segment's file into runs of whole batches. Two decoders make tables of such a block, with equal output:
`fast`, which works on all records of a block at once, and `plain`, which reads one record after the other with
`kproto.records`. Whatever `fast` can't make sense of it leaves to `plain`, which says what is wrong (`errors`).
"""
