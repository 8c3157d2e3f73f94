"""Client quotas as values and arithmetic (KIP-13, KIP-546, KIP-599, KIP-612); `throttling` puts them into effect.

`entities` has what quotas are for and their keys, `groups` says which quota is a client's and who shares it, and
`usage` has the `rate` or the `token_bucket` of each such group.
"""
