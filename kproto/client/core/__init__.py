"""What the client proposals decide, as functions and state machines: no I/O, no clock, no client library.

`settings` reads the new settings; `reset` decides where to go without a valid offset (KIP-842), `group_start` whether a
group starts or a partition was added; `ranges`, `checkpoints` and `catch_up` are KIP-333. The shells around them fetch
facts and apply positions.
"""
