"""Transactions: the coordinator, compared with recorded brokers and used by real clients."""
