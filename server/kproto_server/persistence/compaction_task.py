"""The compaction task: compacts logs in the event loop, in turns of a millisecond, with blocking work in a thread."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from kproto_server.configuration.topic_configs import topic_config
from kproto_server.storage.cleaner import dirtiest
from kproto_server.storage.compaction import Compaction

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kproto_server.clock import Clock, Timer
    from kproto_server.cluster.cluster import Cluster
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.persistence.worker_thread import Post, Worker
    from kproto_server.storage.compaction import Work
    from kproto_server.storage.log_dir import LogDir
    from kproto_server.storage.partition_log import PartitionLog

logger = logging.getLogger("kproto.log")

TURN_S = 0.001
"""Duration of one turn of compaction, for which clients may have to wait."""
CLIENTS_TURN_S = 0.001
"""Duration of the turn that active clients get in between: otherwise a client with one request in flight would get one
response for each turn of compaction."""
IDLE_MS = 1.0
"""Real time without a request after which no client is active."""


class CompactionTask:
    """Compacts one log after the other: all that are dirty enough at the start, and whenever a segment was closed.

    It also runs `log.cleaner.backoff.ms` after a failure. Kafka's cleaner runs in intervals only. Then the size of a
    log would not be limited by its live data, and a test that moves the clock by days would stop at each interval.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: DynamicSettings,
        clock: Clock,
        post: Post,
        worker: Worker,
        log_dir: LogDir,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """``monotonic_s``: returns real time, which ends the turns."""
        self._cluster = cluster
        self._broker_settings = settings
        self._clock = clock
        self._post = post
        self._worker = worker
        self._log_dir = log_dir
        self._monotonic_s = monotonic_s
        self._is_enabled = settings.current.bool("log.cleaner.enable")
        self._stopped = False
        self._next_turn_s = 0.0
        """Monotonic time at which the turn of active clients ends."""
        self._is_idle = False
        """Whether no log is dirty enough; the next closed segment can change that."""
        self._timer: Timer | None = None
        """Ends the backoff."""
        self._damaged: set[PartitionLog] = set()
        self._blocked: dict[PartitionLog, int] = {}
        """Logs that an open transaction keeps from being compacted, each with the base offset of its active segment:
        the next attempt is after the next roll."""

    def start(self) -> None:
        """Begin, unless `log.cleaner.enable` is false."""
        if self._is_enabled:
            self._post(self._start_next)
            self._log_dir.on_roll = self.wake

    def _start_next_later(self) -> None:
        due_ms = self._clock.now_ms() + self._broker_settings.current.int("log.cleaner.backoff.ms")
        self._timer = self._clock.call_at(due_ms, self._start_next, in_background=True)

    def end_backoff(self) -> None:
        """Start again now, if the task waits after a failure: the clock is about to be reset."""
        if self._timer is not None and self._timer.action is not None:
            self._timer.cancel()
            self._post(self._start_next)

    def wake(self) -> None:
        """Look for dirty logs: a segment was closed, or the configs of a topic have changed."""
        if self._is_idle:
            self._is_idle = False
            self._post(self._start_next)

    def stop(self) -> None:
        """Stop. A compaction in progress is dropped; the next start removes its files."""
        self._stopped = True

    def _start_next(self) -> None:
        log_dir = self._log_dir
        if self._stopped or log_dir.writer.failure is not None:
            return
        logs = (log for log in log_dir.logs.values() if log not in self._damaged and self._is_compacted(log))
        candidates = (log for log in logs if self._blocked.get(log) != log.base_offset)
        log = dirtiest((log, float(self._config(log, "min.cleanable.dirty.ratio"))) for log in candidates)
        if log is None:
            self._is_idle = True
            return
        delete_retention_ms = int(self._config(log, "delete.retention.ms"))
        compaction = Compaction(log_dir.disk, log, log_dir.writer, delete_retention_ms, self._clock.now_ms())
        self._post(partial(self._turn, log, compaction, compaction.run(), []))

    def _is_compacted(self, log: PartitionLog) -> bool:
        """Return whether the topic's `cleanup.policy` has compact; a log without a topic is compacted."""
        return self._cluster.topic(log.topic) is None or "compact" in self._config(log, "cleanup.policy")

    def _config(self, log: PartitionLog, name: str) -> str:
        """Return a config of the log's topic, or the broker's value of it."""
        topic = self._cluster.topic(log.topic)
        return topic_config(self._broker_settings.current, topic.configs if topic else {}, name)

    def _turn(
        self, log: PartitionLog, compaction: Compaction, steps: Generator[Work | None], failures: list[Exception]
    ) -> None:
        """Run steps for one turn; ``failures`` gets the error of blocking work in the thread."""
        # Under another policy, retention removes segments of the log.
        is_compacted = self._log_dir.logs.get((log.topic, log.partition)) is log and self._is_compacted(log)
        if self._stopped or not is_compacted:
            steps.close()
            self._start_next()
            return
        now_s = self._monotonic_s()
        if now_s < self._next_turn_s and self._clock.quiet_ms < IDLE_MS:
            self._post(partial(self._turn, log, compaction, steps, failures))
            return
        end_s = now_s + TURN_S
        self._next_turn_s = end_s + CLIENTS_TURN_S
        try:
            if failures:
                steps.throw(failures[0])
            while self._monotonic_s() < end_s:
                work = next(steps, self)
                if work is self:
                    self._finish(log, compaction)
                    return
                if callable(work):
                    again = partial(self._turn, log, compaction, steps, failures)
                    self._worker.run(partial(_run_blocking, work, failures), again)
                    return
        except OSError as error:
            logger.warning("%s can't be compacted now: %s", log.directory, error)
            self._start_next_later()
            return
        except Exception as error:  # noqa: BLE001 - the log stays as it is, and is served
            self._damaged.add(log)
            logger.error("%s can't be compacted: %s", log.directory, error)
            self._start_next()
            return
        self._post(partial(self._turn, log, compaction, steps, failures))

    def _finish(self, log: PartitionLog, compaction: Compaction) -> None:
        result = compaction.result
        if result is None:  # its closed segments are not durable yet
            self._start_next_later()
            return
        if result.first_dirty_offset <= log.first_dirty_offset:  # blocked by an open transaction
            self._blocked[log] = log.base_offset
        log.first_dirty_offset = result.first_dirty_offset
        logger.info("compacted %s from %d to %d bytes", log.directory, result.size_before, result.size_after)
        with suppress(OSError):  # the log is compacted again after the next start
            self._log_dir.save_cleaner_points()
        self._start_next()


def _run_blocking(work: Work, failures: list[Exception]) -> None:
    """Run blocking work in the thread, and store its error."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - raised again in the event loop
        failures.append(error)
