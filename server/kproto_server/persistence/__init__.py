"""How the broker uses the storage: load at the start, group commit, compaction in the background."""
