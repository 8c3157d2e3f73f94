"""The decisions of KIP-842 and KIP-333: pure functions and one state machine, without I/O, clock or client library.

`settings` parses the settings of both proposals. `resets` and `group_start` decide the offset resets of KIP-842.
`catch_up_ranges`, `catch_up` and `checkpoints` decide the parallel catch-up of KIP-333. The modules of `kproto.client`
query the broker, call these decisions and carry them out.
"""
