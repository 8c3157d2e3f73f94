"""The proxy in front of a real cluster, for `kproto proxy`."""
