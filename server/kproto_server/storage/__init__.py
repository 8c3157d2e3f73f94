"""What is on disk: logs in Kafka's format, written by the round, recovered after a crash. Knows nothing of groups."""
