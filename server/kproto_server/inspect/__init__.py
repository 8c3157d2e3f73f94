"""Tools that read logs: `kproto log dump`, `verify` and `export`. Logs are read with `kproto.logs`, never written."""
