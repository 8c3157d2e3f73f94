"""Sockets, the event loop, and the lifetime of the server. This package makes no decision about Kafka's protocol.

`server` has the `nodes` of a process, each with a `node_listener`. `accepting` puts the parts of an accepted connection
together: its `transport`, perhaps with `tls`. `event_loop` polls all of them (`poller`, `busy_poll`) within a
`buffer_quota`, and `shutdown` ends them. `listening` makes sockets before anything else is imported, `freed_memory`
sets what the C library keeps, and `descriptors` divides those of the process. Tests of clients use `links` (bad
networks), `disks` (bad disks), `moves` (of leaders) and `snapshots`.
"""
