"""Authorization: which rights each request needs, and what a client without them gets. A broker without an authorizer
does not import this package.

`table` has the checks of each API, made of those in `checks`; `topic_checks`, `group_checks`, `transaction_checks`,
`token_checks` and `other_checks` have the checks of APIs with rules of their own. `rights` asks the authorizer
(`security.acls`) for a client.
"""
