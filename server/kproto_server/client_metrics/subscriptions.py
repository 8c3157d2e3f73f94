"""The subscriptions of clients and the metrics that they push, by Kafka's ``ClientMetricsManager``.

Theory of operation. A client asks for its subscription (GetTelemetrySubscriptions), then pushes its metrics
(PushTelemetry) with the id of the subscription, once in each interval. A node keeps an instance for each client: the
subscription, the times of its last requests, and the last error. An instance is made new when the configs of any
resource have changed since, so the client may ask and push at once. The id of a subscription follows from its content;
a client with an outdated one gets UNKNOWN_SUBSCRIPTION_ID and asks again.

Source:
    Responses of 3.7.2 to 4.4.0 (fixtures/telemetry).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from kproto.codes import ErrorCode
from kproto.errors import ContentTooLarge, DecodeError, MissingPackage
from kproto.jvm.arithmetic import java_hash, java_uuid_hash
from kproto.jvm.hash_map import in_hash_order
from kproto.records.checksum import crc32c
from kproto.records.compression import Compression, decompress
from kproto_server.client_metrics.configs import (
    ALL_METRICS,
    INTERVAL_DEFAULT_MS,
    ClientMetricsBehavior,
    Subscription,
    subscription,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kproto_server.client_metrics.matching import Client
    from kproto_server.configuration.dynamic_settings import DynamicSettings
    from kproto_server.releases.kafka_version import KafkaVersion

INSTANCES_MAX = 16_384
"""Clients of which something is kept: as many as in Kafka, where the one that was used last goes last."""
EXPIRY_MIN_MS = 60_000
EXPIRY_INTERVALS = 3
"""An instance expires after this time, or this number of intervals, without a request."""
PUSHES_MAX = 1000
PUSHES_MAX_BYTES = 16 << 20
"""Pushes that are kept for tests, the newest ones."""
CONTENT_MAX_BYTES = 8 << 20
"""Of an uncompressed push. DEVIATION: Kafka has no such limit."""
RESERVED_IDS = frozenset({bytes(16), bytes(15) + b"\x01"})
"""The ids of clients that do not exist."""
ACCEPTED_COMPRESSIONS = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""In the order of the response; no compression is accepted, too."""
ASKS_AGAIN = frozenset({ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE})
"""The errors of a push after which a client may ask for its subscription at once."""


class Instance:
    """What a node knows of one client."""

    __slots__ = (
        "error", "expires_ms", "interval_ms", "is_terminating", "last_asked_ms", "last_pushed_ms", "metrics",
        "subscription_id", "version",
    )  # fmt: skip

    def __init__(self, metrics: tuple[str, ...], interval_ms: int, subscription_id: int, version: int) -> None:
        self.metrics: tuple[str, ...] = metrics
        self.interval_ms: int = interval_ms
        self.subscription_id: int = subscription_id
        self.version: int = version
        """The number of config changes when the instance was made."""
        self.last_asked_ms: int = 0
        self.last_pushed_ms: int = 0
        self.is_terminating: bool = False
        self.error: ErrorCode = ErrorCode.NONE
        """The error of the last request, except one of asking."""
        self.expires_ms: int = 0

    def may_ask(self, now_ms: int) -> bool:
        """Return whether an interval has passed since the last request; note the time if it has."""
        if now_ms - max(self.last_asked_ms, self.last_pushed_ms) < self.interval_ms:
            return False
        self.last_asked_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Return whether the client has asked since its last push, or an interval has passed; note the time if so."""
        if self.last_asked_ms <= self.last_pushed_ms and now_ms - self.last_pushed_ms < self.interval_ms:
            return False
        self.last_pushed_ms = now_ms
        return True


class Sender(NamedTuple):
    """Where a request came in."""

    node_id: int
    connection: object


class PushedMetrics(NamedTuple):
    """Metrics that a client has pushed."""

    time_ms: int
    node_id: int
    client: Client
    client_instance_id: bytes
    subscription_id: int
    is_terminating: bool
    compression: Compression
    payload: bytes
    """As the client has sent it."""
    content: bytes | None
    """Uncompressed: an OTLP ``MetricsData``. None: it cannot be uncompressed, or a package for it is missing."""


class ClientMetrics:
    """The instances of clients, and the pushes that were received."""

    def __init__(
        self, kafka_version: KafkaVersion, settings: DynamicSettings, random_bytes: Callable[[int], bytes]
    ) -> None:
        self._kafka_version = kafka_version
        self._behavior = kafka_version.behavior(ClientMetricsBehavior)
        self._settings = settings
        self._random_bytes = random_bytes
        self._instances: OrderedDict[tuple[int, bytes], Instance] = OrderedDict()
        self._made_by: dict[object, tuple[int, bytes]] = {}
        """The instance that a connection has made last."""
        self._resources: dict[str, tuple[Mapping[str, str], Subscription]] = {}
        """By name, the configs of a resource and what they mean."""
        self.pushes: deque[PushedMetrics] = deque()
        """The newest pushes, if the broker has a receiver; the oldest one first."""
        self._pushed_bytes = 0

    def forget(self) -> None:
        """Drop all instances and pushes."""
        self._instances.clear()
        self._made_by.clear()
        self._resources.clear()
        self.pushes.clear()
        self._pushed_bytes = 0

    def disconnected(self, connection: object) -> None:
        """Drop the instance that a connection has made, as from 4.0 on."""
        key = self._made_by.pop(connection, None)
        if key is not None and self._behavior.forgets_disconnected:
            self._instances.pop(key, None)

    def new_instance_id(self) -> bytes:
        """Return an id for a client that has none."""
        while True:
            found = self._random_bytes(16)
            if found not in RESERVED_IDS:
                return found

    def ask(self, client_instance_id: bytes, client: Client, sender: Sender, now_ms: int) -> Instance | ErrorCode:
        """Return the instance of a client that asks for its subscription, or the error."""
        instance = self._instance(client_instance_id, client, sender, now_ms)
        if not instance.may_ask(now_ms) and not (self._behavior.asks_again and instance.error in ASKS_AGAIN):
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.error = ErrorCode.NONE
        return instance

    def push(
        self,
        client_instance_id: bytes,
        client: Client,
        sender: Sender,
        now_ms: int,
        *,
        subscription_id: int,
        compression: int,
        payload: bytes,
        is_terminating: bool,
    ) -> ErrorCode:
        """Take the metrics of a client, or return the error."""
        if client_instance_id in RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(client_instance_id, client, sender, now_ms)
        error = self._push_error(
            instance, now_ms, subscription_id, compression, len(payload), is_terminating=is_terminating
        )
        instance.is_terminating = is_terminating
        content: bytes | None = payload
        if not error and payload:
            try:
                content = decompress(Compression(compression), payload, limit=CONTENT_MAX_BYTES)
            except (DecodeError, ContentTooLarge):
                content = None
                if self._behavior.checks_content:
                    error = ErrorCode.INVALID_RECORD
            except MissingPackage:
                content = None
        instance.error = error
        if not error and self._settings.current.bool("client.telemetry.receiver.enable"):
            self._keep(
                PushedMetrics(
                    now_ms,
                    sender.node_id,
                    client,
                    client_instance_id,
                    subscription_id,
                    is_terminating,
                    Compression(compression),
                    payload,
                    content,
                )
            )
        return error

    def _push_error(
        self,
        instance: Instance,
        now_ms: int,
        subscription_id: int,
        compression: int,
        size_bytes: int,
        *,
        is_terminating: bool,
    ) -> ErrorCode:
        if instance.is_terminating:
            return ErrorCode.INVALID_REQUEST
        if not instance.may_push(now_ms) and not is_terminating:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if subscription_id != instance.subscription_id:
            return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        if compression not in (Compression.NONE, *ACCEPTED_COMPRESSIONS):
            return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if size_bytes > self._settings.current.int("telemetry.max.bytes"):
            return ErrorCode.TELEMETRY_TOO_LARGE
        return ErrorCode.NONE

    def _instance(self, client_instance_id: bytes, client: Client, sender: Sender, now_ms: int) -> Instance:
        key = sender.node_id, client_instance_id
        instance = self._instances.get(key)
        version = self._settings.client_metrics_version
        if instance is None or instance.version < version or instance.expires_ms <= now_ms:
            instance = self._instances[key] = self._made(client_instance_id, client, version)
            self._made_by[sender.connection] = key
            if len(self._instances) > INSTANCES_MAX:
                self._instances.popitem(last=False)
        self._instances.move_to_end(key)
        instance.expires_ms = now_ms + max(EXPIRY_MIN_MS, EXPIRY_INTERVALS * instance.interval_ms)
        return instance

    def _made(self, client_instance_id: bytes, client: Client, version: int) -> Instance:
        metrics: dict[str, None] = {}
        interval_ms = INTERVAL_DEFAULT_MS
        for resource in self._subscriptions():
            if resource.matching.matches(client):
                metrics |= dict.fromkeys(resource.metrics)
                interval_ms = min(interval_ms, resource.interval_ms)
        ordered = [ALL_METRICS] if ALL_METRICS in metrics else in_hash_order(metrics, java_hash)
        checksum = crc32c(f"[{', '.join(ordered)}]{interval_ms}".encode())
        subscription_id = (checksum ^ java_uuid_hash(client_instance_id)) & 0xFFFFFFFF
        signed = subscription_id - 2**32 if subscription_id & 0x80000000 else subscription_id
        return Instance(tuple(ordered), interval_ms, signed, version)

    def _subscriptions(self) -> list[Subscription]:
        """Return what all resources mean; configs that have not changed are not read again."""
        known, self._resources = self._resources, {}
        for name, configs in self._settings.client_metrics.items():
            before = known.get(name)
            if before is None or before[0] is not configs:
                before = configs, subscription(configs, self._kafka_version)
            self._resources[name] = before
        return [one for _, one in self._resources.values()]

    def _keep(self, pushed: PushedMetrics) -> None:
        self.pushes.append(pushed)
        self._pushed_bytes += _size_bytes(pushed)
        while len(self.pushes) > PUSHES_MAX or self._pushed_bytes > PUSHES_MAX_BYTES:
            self._pushed_bytes -= _size_bytes(self.pushes.popleft())


def _size_bytes(pushed: PushedMetrics) -> int:
    return len(pushed.payload) + len(pushed.content or b"")
