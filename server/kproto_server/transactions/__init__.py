"""The transaction coordinator: transactional ids, their producer ids and epochs, and the two phases of a commit.

`coordinator` has the theory of operation. `transaction` has the states of one transactional id, `transitions` decides
its next state, `marker_writer` writes the markers of a decision to partitions, and `tasks` runs timeouts and
expiration. `records` and `loading` are the way to `__transaction_state` and back.
"""
