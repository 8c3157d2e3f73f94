"""Secured listeners, logins and ACLs, without sockets: `network` and `requests` use them.

`certificates` makes the certificates of TLS, `tls_files` and `key_stores` write and read the files that have them, and
`principals` names the owner of one. `sasl` has the mechanisms and what a connection has authenticated, `oauth` their
tokens, `users` and `delegation_tokens` the secrets that they check. `acls` decides what a principal may do, and
`client_settings` lists the settings that clients need.
"""
