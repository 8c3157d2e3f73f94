"""Logs on disk, as real Kafka writes them: found, read in bounded memory, dumped, verified."""
