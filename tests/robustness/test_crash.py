"""The crash driver finds nothing in a few rounds, and finds a planted loss."""

from __future__ import annotations

import pytest

from tests.robustness.crash import crash

PLANTED = {
    "deleted records are not saved": (
        "from kproto_server.persistence.topic_logs import TopicLogs\n"
        "TopicLogs.save_start_offsets = lambda self, *_: True\n"
    ),
    "a twentieth of all writes is lost": (
        "from kproto_server.storage.log_writer import LogWriter\n"
        "import itertools\n"
        "count, write = itertools.count(1), LogWriter.write\n"
        "LogWriter.write = lambda self, *batch: 0 if next(count) % 20 == 0 else write(self, *batch)\n"
    ),
    "topics are saved too late": (
        "from kproto_server.cluster.cluster import Cluster\nCluster.save = lambda self: self.unsaved.clear()\n"
    ),
}
"""What a broker does wrong, with the source that makes it do so."""


@pytest.mark.slow
def test_a_few_rounds_find_nothing() -> None:
    """Each round has real processes; slow for that reason."""
    counts, finding = crash(7, rounds=5)
    assert finding is None, finding
    assert counts["changes acknowledged"] > 0
    assert counts["values compared"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_loss_is_found(planted: str) -> None:
    """Durability ``os``, with which all rounds of the first directory run."""
    _, finding = crash(7, rounds=12, planted=PLANTED[planted])
    assert finding is not None
    assert "expected" in finding or "topics.json has no" in finding
