"""Transactions: lists, descriptions, producers of partitions, and hanging transactions, which the tool aborts."""

from tests.clients.tool_steps import query, run, topic, transaction
from tests.clients.tools import TRANSACTIONS

IDS = ("Coordinator", "CoordinatorId", "ProducerId")
TIMES = ("CurrentTransactionStartTimeMs", "TransactionDurationMs", "LastTimestamp")

STEPS = (
    topic("bought", 2),
    query(TRANSACTIONS, "list", "TransactionalId", ignored=IDS, unordered=True),
    query(TRANSACTIONS, "describe --transactional-id unknown", "unknown"),
    query(TRANSACTIONS, "describe-producers --topic bought --partition 0", "ProducerId"),
    query(TRANSACTIONS, "describe-producers --topic bought --partition 0 --broker-id 1", "ProducerId"),
    query(TRANSACTIONS, "find-hanging --broker-id 1", "Topic"),
    query(TRANSACTIONS, "find-hanging", "find-hanging"),
    query(TRANSACTIONS, "find-hanging --topic bought", "Topic"),
    query(TRANSACTIONS, "find-hanging --topic bought --partition 0", "Topic"),
    query(TRANSACTIONS, "find-hanging --partition 0", "topic"),
    transaction("buyer-1", "bought", keys="abc", ends="committed"),
    transaction("buyer-2", "bought", ends="aborted"),
    transaction("buyer-3", "bought", keys="ab"),
    query(TRANSACTIONS, "list", "buyer-3", "Ongoing", ignored=IDS, unordered=True),
    query(TRANSACTIONS, "list --duration-filter 3600000", "TransactionalId"),
    query(TRANSACTIONS, "list --duration-filter 0", "buyer-3", ignored=IDS, unordered=True),
    query(TRANSACTIONS, "list --transactional-id-pattern buyer-[12]", "buyer-2", ignored=IDS, unordered=True),
    query(TRANSACTIONS, "list --transactional-id-pattern (", "INVALID_REGULAR_EXPRESSION"),
    query(TRANSACTIONS, "describe --transactional-id buyer-1", "CompleteCommit", ignored=IDS + TIMES),
    query(TRANSACTIONS, "describe --transactional-id buyer-2", "CompleteAbort", ignored=IDS + TIMES),
    query(TRANSACTIONS, "describe --transactional-id buyer-3", "bought-0", ignored=IDS + TIMES),
    query(
        TRANSACTIONS,
        "describe-producers --topic bought --partition 0",
        "ProducerId",
        ignored=IDS + TIMES,
        unordered=True,
    ),
    query(TRANSACTIONS, "describe-producers --topic bought --partition 1", "ProducerId"),
    query(TRANSACTIONS, "find-hanging --broker-id 1 --max-transaction-timeout 1", "Topic"),
)
"""The timestamps of the records are years old, but the coordinator knows the open transaction: it does not hang."""

HANGING = (
    topic("hung", 1),
    transaction("hanger", "hung", keys="ab"),
    query(TRANSACTIONS, "find-hanging --broker-id 1", "Topic"),
    run(TRANSACTIONS, "abort --topic hung --partition 0", "start-offset"),
    run(TRANSACTIONS, "abort --topic hung --partition 0 --start-offset 5", "starting at offset 5"),
    run(TRANSACTIONS, "abort --topic hung --partition 0 --start-offset 0"),
    query(TRANSACTIONS, "describe-producers --topic hung --partition 0", "None", ignored=IDS + TIMES),
    run(TRANSACTIONS, "abort --topic hung --partition 0 --start-offset 0", "starting at offset 0"),
    run(
        TRANSACTIONS, "abort --topic hung --partition 0 --producer-id PRODUCER --producer-epoch 0", "coordinator-epoch"
    ),
    run(
        TRANSACTIONS, "abort --topic hung --partition 0 --producer-id PRODUCER --producer-epoch 0 --coordinator-epoch 0"
    ),
    query(TRANSACTIONS, "describe-producers --topic hung --partition 0", "None", ignored=IDS + TIMES),
)
"""The tool writes an abort marker for a transaction that the coordinator still has."""
