"""Compaction of the offsets topic in the background: small steps between rounds of the loop, syncs in a thread."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kproto_server.configuration.topic_configs import topic_config
from kproto_server.storage.cleaner import dirtiest
from kproto_server.storage.compaction import Compaction, Terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto_server.configuration.settings import Settings
    from kproto_server.shell.host import Host
    from kproto_server.shell.log_rounds import Syncer
    from kproto_server.state import BrokerState
    from kproto_server.storage.log_dir import LogDir
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.002
"""How long clients may have to wait for the next round of the loop."""


def terms_of(settings: Settings) -> Terms:
    """Return what the settings say of compaction."""
    return Terms(
        delete_retention_ms=settings.int("log.cleaner.delete.retention.ms"),
        min_dirty_ratio=float(settings.str("log.cleaner.min.cleanable.ratio")),
    )


class Compacting:
    """Looks every `log.cleaner.backoff.ms` whether a log has to be compacted, and compacts one after the other."""

    def __init__(self, state: BrokerState, host: Host, syncer: Syncer, log_dir: LogDir) -> None:
        self._state = state
        self._clock = state.clock
        self._host = host
        self._syncer = syncer
        self._log_dir = log_dir
        self._terms = terms_of(state.settings)
        self._backoff_ms = state.settings.int("log.cleaner.backoff.ms")
        self._is_enabled = state.settings.bool("log.cleaner.enable")
        self._stopped = False
        self._failed: set[PartitionLog] = set()

    def start(self) -> None:
        """Look from now on."""
        if self._is_enabled:
            self._clock.call_at(self._clock.now_ms() + self._backoff_ms, self._look, in_background=True)

    def stop(self) -> None:
        """Begin nothing any more; what is half done is forgotten."""
        self._stopped = True

    def _look(self) -> None:
        if self._stopped:
            return
        logs = (log for log in self._log_dir.logs.values() if log not in self._failed and self._is_compacted(log))
        log = dirtiest(logs, self._terms.min_dirty_ratio)
        if log is None:
            self.start()
            return
        log_dir = self._log_dir
        compaction = Compaction(log_dir.disk, log, log_dir.durable, self._terms, self._clock.now_ms())
        self._host.post(partial(self._turn, log, compaction, compaction.run()))

    def _is_compacted(self, log: PartitionLog) -> bool:
        """Whether the topic says so; what belongs to none is compacted."""
        state = self._state
        topic = state.cluster.topic(log.topic)
        return topic is None or "compact" in topic_config(
            state.profile, state.settings, topic.configs, "cleanup.policy"
        )

    def _turn(self, log: PartitionLog, compaction: Compaction, steps: Iterator[Callable[[], object] | None]) -> None:
        if self._stopped:
            return
        end = time.monotonic() + TURN_S
        again = partial(self._turn, log, compaction, steps)
        try:
            while time.monotonic() < end:
                work = next(steps, self)
                if work is self:
                    self._done(log, compaction)
                    return
                if callable(work):
                    self._syncer.run(partial(self._block, log, work), again)
                    return
        except Exception as error:  # noqa: BLE001 - a log that can't be compacted is left as it is, and served
            self._give_up(log, error)
            return
        self._host.post(again)

    def _block(self, log: PartitionLog, work: Callable[[], object]) -> None:
        """Do what blocks, in the thread."""
        try:
            work()
        except OSError as error:
            self._stopped = True
            self._host.post(partial(self._give_up, log, error))

    def _give_up(self, log: PartitionLog, error: Exception) -> None:
        self._failed.add(log)
        logger.error("%s can't be compacted: %s", log.directory, error)
        self._look()

    def _done(self, log: PartitionLog, compaction: Compaction) -> None:
        outcome = compaction.outcome
        if outcome is None:  # what is closed is being synced, or can't be
            self.start()
            return
        log.first_dirty_offset = outcome.first_dirty_offset
        logger.info(
            "compacted %s: %d bytes of closed segments are %d",
            log.directory,
            outcome.size_before,
            outcome.size_after,
        )
        with suppress(OSError):  # then it is compacted once more after the next start
            self._log_dir.save_cleaner_points()
        self._look()
