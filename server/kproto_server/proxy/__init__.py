"""The proxy in front of a real cluster, for `kproto proxy`.

`proxy` has the listening ports, `upstream` the cluster behind them, and `relay` moves the bytes of one connection
through `sockets`. On their way `cutting` cuts them into frames, `exchanges` counts requests and responses, `logins`
notes who logs in, `rewriting` replaces the addresses of brokers, `faults` applies fault rules, and `keeping` keeps
requests for `control`, the control API.
"""
