"""Captured traffic again: sent to another broker (`kproto replay`), and compared (`kproto diff`)."""
