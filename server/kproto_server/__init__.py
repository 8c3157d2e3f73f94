"""The broker: sockets, state and the ways in. ``kproto`` has the protocol; nothing there depends on this package."""
