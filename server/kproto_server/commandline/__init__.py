"""The command ``kproto``."""
