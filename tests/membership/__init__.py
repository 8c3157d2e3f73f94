"""Classic groups: scripts of members' requests, recorded from real brokers and compared with kproto."""
