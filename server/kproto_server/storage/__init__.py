"""Storage: logs on disk in Kafka's format, group commit, recovery and compaction. Imports nothing of the broker."""
