"""Partition logs on disk: finding and reading them, also while a broker is writing to them.

Logs of Kafka and of kproto have the same files. `files` finds partitions and their segments on this machine
(`locations`) or in a store (`remote`), `index` searches an
``.index``, `blocks` cuts a segment into runs of whole batches, `batches` decodes one batch, `ranges` reads a range of
offsets across segments, `transactions` finds out how transactions end, and `errors` names each kind of damage.

This package needs no extra. `kproto.arrow` makes tables of what it reads; the tools behind `kproto log` print and
check it.
"""
