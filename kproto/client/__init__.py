"""Consumers that know KIP-842 and KIP-333 (extra ``kproto[client]``)."""
