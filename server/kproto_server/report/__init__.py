"""The report at the end of `kproto run`: what clients sent, and what another release would make of it."""
