"""The servers measured, each made ready, started and stopped in the same way."""
