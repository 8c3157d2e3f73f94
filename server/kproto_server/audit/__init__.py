"""Reading the request logs of real brokers, for `kproto audit`."""
