"""What `kproto serve` and `kproto run` were told to do, checked and ready: the border between command line and broker.

Plain classes: this module is on the way to a listening socket, and importing dataclasses takes longer than the rest of
that way.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kproto_server.clock import ClockMode
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

DEFAULT_HOST = "127.0.0.1"
"""Nothing listens beyond loopback unless told (D9)."""
DEFAULT_PORT = 9092
PORT_MAX = 65535


class ServeOptions:
    """One `kproto serve`: where to listen, as which release, with which settings and clock."""

    __slots__ = ("brokers", "clock", "data", "host", "kafka_version", "port", "port_file", "settings")

    def __init__(
        self,
        *,
        kafka_version: KafkaVersion,
        settings: Settings,
        clock: ClockMode,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        port_file: str | None = None,
        brokers: int = 1,
        data: DataDirectory | None = None,
    ) -> None:
        self.kafka_version = kafka_version
        self.settings = settings
        self.clock = clock
        self.data = data
        """Where offsets are kept; None: in memory."""
        self.host = host
        self.port = port
        """Of the first broker; the others take the next ones. 0: free ones for all."""
        self.port_file = port_file
        """Written when all brokers listen: one ``HOST:PORT`` a line, in the order of node ids."""
        self.brokers = brokers

    @property
    def ports(self) -> tuple[int, ...]:
        """One port for each broker, in the order of node ids; 0 stands for a free one."""
        if self.port == 0:
            return (0,) * self.brokers
        return tuple(range(self.port, self.port + self.brokers))


class RunOptions:
    """One `kproto run`: the command, the broker it gets, and what to report."""

    __slots__ = (
        "brokers",
        "clock",
        "command",
        "data",
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
        data: DataDirectory | None = None,
    ) -> None:
        self.command = command
        self.kafka_version = kafka_version
        self.target = target
        """The release that the report judges by."""
        self.settings = settings
        self.clock = clock
        self.brokers = brokers
        self.port = port
        """Of the first broker; 0: free ones for all."""
        self.reports = reports
        """Files to write; their names tell the form."""
        self.fail_on_removed = fail_on_removed
        self.data = data
        """Where offsets are kept; None: in memory."""
