"""The invariants of a history, checked without any knowledge of a coordinator.

These modules import the protocol's messages and the history, and nothing of the broker. A rule reports only what no
correct broker could have responded, whatever happened between the requests that the history shows: where an order of
events is not certain, the history has the benefit of the doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulator.invariants.consumer_groups import check_consumer_groups
from tests.simulator.invariants.convergence import check_convergence
from tests.simulator.invariants.groups import check_groups
from tests.simulator.invariants.offsets import check_offsets
from tests.simulator.invariants.records import check_records
from tests.simulator.invariants.share_groups import check_share_groups
from tests.simulator.invariants.streams_groups import check_streams_groups
from tests.simulator.invariants.transactions import check_transactions
from tests.simulator.invariants.violation import Violation

if TYPE_CHECKING:
    from tests.simulator.history import History

CHECKS = (
    check_convergence,
    check_groups,
    check_consumer_groups,
    check_offsets,
    check_records,
    check_share_groups,
    check_streams_groups,
    check_transactions,
)

__all__ = ["Violation", "violations"]


def violations(history: History) -> list[Violation]:
    """Return the violations of all invariants."""
    return [violation for check in CHECKS for violation in check(history)]
