"""TxnOffsetCommit to an offsets partition that knows a producer's open transaction, as on 3.9.2, 4.0.0 and 4.2.2.

UnifiedLog.maybeStartTransactionVerification does not ask the transaction coordinator then, so that the transactional id
of the request does not matter; older epochs are refused first, but not in 4.0.
"""

from __future__ import annotations

import pytest

from kproto.codes import ErrorCode
from kproto_server.releases.kafka_version import KafkaVersion
from tests.coordinator.broker_state import new_state
from tests.membership.in_memory_transport import InMemoryTransport
from tests.transactions.producers import Producers

WRONG_ID = ErrorCode.INVALID_PRODUCER_ID_MAPPING


def error_of(producers: Producers) -> int:
    [response] = producers.steps[-1].responses["A"]
    return int(response["topics"][0]["partitions"][0].get("error_code", 0))


@pytest.mark.parametrize(
    ("release", "of_older_epochs"),
    [
        ("3.9", ErrorCode.INVALID_PRODUCER_EPOCH),
        ("4.0", WRONG_ID),
        ("4.1", ErrorCode.INVALID_PRODUCER_EPOCH),
        ("4.4", ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
@pytest.mark.parametrize("tier", [4, 5])
def test_the_partition_decides_while_the_transaction_is_open(release: str, of_older_epochs: int, tier: int) -> None:
    state = new_state(release, topics={"t": 1})
    for name in ("__transaction_state", "__consumer_offsets"):
        assert state.cluster.ensure_internal_topic(name, state.clock.now_ms())
    producers = Producers(InMemoryTransport(state), KafkaVersion.named(release), "p", tier)
    producers.init("b")
    producers.init("a")
    producers.init("a")
    pid, epoch = producers.ids["a"]

    def commit(epoch: int, transactional_id: str = "b") -> int:
        producers.commit_offsets(transactional_id, pid=pid, epoch=epoch)
        return error_of(producers)

    assert commit(epoch) == WRONG_ID
    producers.add_offsets("a")
    assert commit(epoch) == WRONG_ID
    assert commit(epoch, "a") == 0
    assert commit(epoch) == commit(epoch, "never") == 0
    assert commit(epoch - 1) == of_older_epochs
    assert commit(epoch + 1) == WRONG_ID
    producers.end("a")
    assert commit(epoch) == commit(epoch - 1) == WRONG_ID  # the second one is a deviation
