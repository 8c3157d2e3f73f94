"""Logs of `__consumer_offsets` as Arrow record batches, with numpy and pyarrow alone (extra ``kproto[arrow]``).

`schemas` declares the tables. `reading.RangeReader` decodes a range of offsets, block by block (`kproto.logs.blocks`).
Two decoders make the same tables of a block: `fast` works on all records of a block at once, and `reference` reads one
record after the other with `kproto.records`. `fast` passes every block that it cannot decode to `reference`, which
decodes it or raises the error that names the damage (`kproto.logs.errors`).
"""
