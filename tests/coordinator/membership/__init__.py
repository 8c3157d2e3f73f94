"""The coordinator's part in classic groups, function by function, on a clock of its own."""
