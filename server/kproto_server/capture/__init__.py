"""Captures of network traffic: pcap and pcapng files, TCP streams put together, and the writer of `kproto proxy`."""
