"""The shell: sockets, the event loop and lifetimes. It decides nothing about Kafka."""
