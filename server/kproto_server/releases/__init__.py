"""Kafka's releases: what each serves, and where they answer differently."""
