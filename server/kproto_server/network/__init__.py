"""Sockets, the event loop, and the lifetime of the server. This package makes no decision about Kafka's protocol."""
