"""A deterministic simulator: clients, a network, a disk and the broker in one thread, all from one seed.

Theory of operation. A seed makes a `Script`: the broker's settings, its clients, and the faults. `Simulation` runs it
in virtual time: requests and responses are bytes that pass through a network with latency, the broker is that of
`kproto_server.testing` with its log on a simulated disk, and faults delay and lose messages, pause and restart clients,
stop nodes, and kill the broker or its power in the middle of an operation of the disk. When the faults have stopped,
the groups have some time to converge, the clients end, and everything is read once more. The result is a `History` of
all requests and responses, which `invariants` checks without any knowledge of a coordinator. `shrink` removes lines
from a script as long as the same invariant fails.

Nothing in a run depends on real time, on threads or on the order of hashes: a script always has the same history.
"""
