"""The checked options of `kproto serve` and `kproto run`: the border between command line and broker.

These are plain classes because importing dataclasses takes longer than all else before the sockets listen.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kproto_server.clock import ClockMode
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

DEFAULT_HOST = "127.0.0.1"
"""By default only loopback listens (D9)."""
DEFAULT_PORT = 9092
PORT_MAX = 65535


class ServeOptions:
    """The options of `kproto serve`: addresses, Kafka version, settings and clock."""

    __slots__ = (
        "brokers", "clock", "data", "exit_with_parent", "host", "kafka_version", "port", "port_file", "settings",
    )  # fmt: skip

    def __init__(
        self,
        *,
        kafka_version: KafkaVersion,
        settings: Settings,
        clock: ClockMode,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        port_file: str | None = None,
        exit_with_parent: bool = False,
        brokers: int = 1,
        data: DataDirectory | None = None,
    ) -> None:
        self.kafka_version: KafkaVersion = kafka_version
        self.settings: Settings = settings
        self.clock: ClockMode = clock
        self.data: DataDirectory | None = data
        """The data directory; None: offsets and records stay in memory."""
        self.host: str = host
        self.port: int = port
        """Port of the first broker; each further broker has the next one. 0: a free port for each."""
        self.port_file: str | None = port_file
        """File that exists while the brokers serve: one ``HOST:PORT`` a line, in the order of node ids."""
        self.exit_with_parent: bool = exit_with_parent
        self.brokers: int = brokers

    @property
    def ports(self) -> tuple[int, ...]:
        """Return one port for each broker, in the order of node ids; 0 stands for a free port."""
        if self.port == 0:
            return (0,) * self.brokers
        return tuple(range(self.port, self.port + self.brokers))


class RunOptions:
    """The options of `kproto run`: the command, its broker, and the reports."""

    __slots__ = (
        "brokers",
        "clock",
        "command",
        "data",
        "fail_on_protocol_error",
        "fail_on_removed",
        "kafka_version",
        "port",
        "reports",
        "settings",
        "target",
    )  # fmt: skip

    def __init__(
        self,
        *,
        command: tuple[str, ...],
        kafka_version: KafkaVersion,
        target: KafkaVersion,
        settings: Settings,
        clock: ClockMode,
        brokers: int = 1,
        port: int = 0,
        reports: tuple[str, ...] = (),
        fail_on_removed: bool = False,
        fail_on_protocol_error: bool = False,
        data: DataDirectory | None = None,
    ) -> None:
        self.command: tuple[str, ...] = command
        self.kafka_version: KafkaVersion = kafka_version
        self.target: KafkaVersion = target
        """The release against which the report checks the clients."""
        self.settings: Settings = settings
        self.clock: ClockMode = clock
        self.brokers: int = brokers
        self.port: int = port
        """Port of the first broker; 0: a free port for each."""
        self.reports: tuple[str, ...] = reports
        """Files to write; the suffix of each name selects the format."""
        self.fail_on_removed: bool = fail_on_removed
        self.fail_on_protocol_error: bool = fail_on_protocol_error
        self.data: DataDirectory | None = data
        """The data directory; None: offsets and records stay in memory."""
