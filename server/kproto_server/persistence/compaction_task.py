"""Compaction of the offsets topic in the background: small steps between rounds of the loop, syncs in a thread."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kproto_server.configuration.topic_configs import topic_config
from kproto_server.storage.cleaner import dirtiest
from kproto_server.storage.compaction import Compaction, CompactionSettings

if TYPE_CHECKING:
    from collections.abc import Generator

    from kproto_server.clock import Clock
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.configuration.settings import Settings
    from kproto_server.network.event_loop import Host
    from kproto_server.persistence.group_commit import WorkerThread
    from kproto_server.storage.compaction import Work
    from kproto_server.storage.log_dir import LogDir
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.001
"""How long clients may have to wait for the next round of the loop."""
CLIENTS_TURN_S = 0.001
"""How long those that are active have the loop for themselves then: one that sends a request at a time would else get
one answered a turn."""
IDLE_MS = 1.0
"""Real time without a request after which nobody is."""


def compaction_settings(settings: Settings) -> CompactionSettings:
    """Return what the settings say of compaction."""
    return CompactionSettings(
        delete_retention_ms=settings.int("log.cleaner.delete.retention.ms"),
        min_dirty_ratio=float(settings.str("log.cleaner.min.cleanable.ratio")),
    )


class CompactionTask:
    """Looks when a segment was closed whether a log has to be compacted; those that have to be are, one by one.

    The first look is at the start, and one comes `log.cleaner.backoff.ms` after a compaction that has failed. Kafka's
    cleaner looks by the time alone: what comes between would not be bounded by what lives, and a clock that is moved
    by days would stop at each look.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: DynamicSettings,
        clock: Clock,
        host: Host,
        worker: WorkerThread,
        log_dir: LogDir,
    ) -> None:
        self._cluster = cluster
        self._broker_settings = settings
        self._clock = clock
        self._host = host
        self._sync_thread = worker
        self._log_dir = log_dir
        self._settings = compaction_settings(settings.current)
        self._backoff_ms = settings.current.int("log.cleaner.backoff.ms")
        self._is_enabled = settings.current.bool("log.cleaner.enable")
        self._stopped = False
        self._next_turn_s = 0.0
        """When active clients have had their turn, in monotonic seconds."""
        self._is_idle = False
        """Whether nothing is compacted, and a segment that is closed may change that."""
        self._failed: set[PartitionLog] = set()
        """Those that are damaged."""
        self._in_vain: dict[PartitionLog, int] = {}
        """Where those began their newest segment of which nothing more could be compacted: until they have another."""

    def start(self) -> None:
        """Look from now on."""
        if self._is_enabled:
            self._host.post(self._look)
            self._log_dir.on_roll = self.wake

    def _look_later(self) -> None:
        self._clock.call_at(self._clock.now_ms() + self._backoff_ms, self._look, in_background=True)

    def wake(self) -> None:
        """A segment was closed, or topics are to be kept in another way."""
        if self._is_idle:
            self._is_idle = False
            self._host.post(self._look)

    def stop(self) -> None:
        """Begin nothing any more; what is half done is forgotten."""
        self._stopped = True

    def _look(self) -> None:
        log_dir = self._log_dir
        if self._stopped or log_dir.writer.failure is not None:
            return
        logs = (log for log in log_dir.logs.values() if log not in self._failed and self._is_compacted(log))
        worth = (log for log in logs if self._in_vain.get(log) != log.base_offset)
        log = dirtiest(worth, self._settings.min_dirty_ratio)
        if log is None:
            self._is_idle = True
            return
        compaction = Compaction(log_dir.disk, log, log_dir.writer, self._settings, self._clock.now_ms())
        self._host.post(partial(self._turn, log, compaction, compaction.run(), []))

    def _is_compacted(self, log: PartitionLog) -> bool:
        """Whether the topic says so; what belongs to none is compacted."""
        cluster = self._cluster
        topic = cluster.topic(log.topic)
        return topic is None or "compact" in topic_config(
            cluster.kafka_version, self._broker_settings.current, topic.configs, "cleanup.policy"
        )

    def _turn(
        self, log: PartitionLog, compaction: Compaction, steps: Generator[Work | None], failures: list[OSError]
    ) -> None:
        """Go on for some steps; ``failures`` are those of what was done in the thread."""
        if self._stopped or self._log_dir.logs.get((log.topic, log.partition)) is not log:
            steps.close()
            self._look()
            return
        begin = time.monotonic()
        if begin < self._next_turn_s and self._clock.quiet_ms < IDLE_MS:
            self._host.post(partial(self._turn, log, compaction, steps, failures))
            return
        end = begin + TURN_S
        self._next_turn_s = end + CLIENTS_TURN_S
        try:
            if failures:
                steps.throw(failures[0])
            while time.monotonic() < end:
                work = next(steps, self)
                if work is self:
                    self._done(log, compaction)
                    return
                if callable(work):
                    again = partial(self._turn, log, compaction, steps, failures)
                    self._sync_thread.run(partial(_block, work, failures), again)
                    return
        except OSError as error:
            logger.warning("%s can't be compacted now: %s", log.directory, error)
            self._look_later()
            return
        except Exception as error:  # noqa: BLE001 - a log that can't be compacted is left as it is, and served
            self._failed.add(log)
            logger.error("%s can't be compacted: %s", log.directory, error)
            self._look()
            return
        self._host.post(partial(self._turn, log, compaction, steps, failures))

    def _done(self, log: PartitionLog, compaction: Compaction) -> None:
        result = compaction.result
        if result is None:  # what is closed is being synced, or can't be
            self._look_later()
            return
        if result.first_dirty_offset <= log.first_dirty_offset:  # a transaction does not end
            self._in_vain[log] = log.base_offset
        log.first_dirty_offset = result.first_dirty_offset
        logger.info("compacted %s: %d bytes are %d", log.directory, result.size_before, result.size_after)
        with suppress(OSError):  # then it is compacted once more after the next start
            self._log_dir.save_cleaner_points()
        self._look()


def _block(work: Work, failures: list[OSError]) -> None:
    """Do what blocks, in the thread."""
    try:
        work()
    except OSError as error:
        failures.append(error)
