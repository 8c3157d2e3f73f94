"""Reads the request logs of real brokers, for `kproto audit`: `log_lines` one line, `request_log` whole files."""
