"""The metrics that clients push (KIP-714).

`configs` has the configs of client metrics resources, which say which metrics the cluster wants from which clients and
how often. `subscriptions` has what each client is subscribed to, and checks its pushes; `matching` finds the resources
that match a client.
"""
