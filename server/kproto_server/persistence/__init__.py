"""The data directory of a broker: ties the logs of `kproto_server.storage` to the coordinator and the topics."""
