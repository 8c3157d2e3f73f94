"""The transaction coordinator: transactional ids, their producer ids and epochs, and the two phases of a commit.

`coordinator` has the theory of operation. `transaction` has the states of one transactional id, `transitions` decides
its next state, `ending` and `marker_writer` write the markers of a decision, and `tasks` runs timeouts and expiration.
`transaction_log`, `records`, and `loading` are the way to `__transaction_state` and back.
"""
