"""The proxy in front of a real cluster, for `kproto proxy`.

`proxy` has the listening ports, `upstream` the cluster behind them, and `relay` moves the bytes of one connection
through `sockets`. On their way `cutting` cuts them into frames, `exchanges` counts requests and responses, `logins`
notes who logs in, and `rewriting` replaces the addresses of brokers.
"""
