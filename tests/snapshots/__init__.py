"""Snapshots of a broker's state."""
