"""Classic groups in the coordinator, function by function, on a clock of their own."""
