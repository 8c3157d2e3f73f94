"""The checked options of `kproto serve`, `run`, `audit` and `proxy`: the border between command line and broker.

These are plain classes, because importing dataclasses takes longer than all else before the sockets listen.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kproto_server.broker.fault_file import Faults
    from kproto_server.broker.security import SecurityOptions
    from kproto_server.broker.seed import Seed
    from kproto_server.clock import ClockMode
    from kproto_server.configuration.data_directory import DataDirectory
    from kproto_server.configuration.listeners import Listener
    from kproto_server.configuration.settings import Settings
    from kproto_server.releases.kafka_version import KafkaVersion

DEFAULT_HOST = "127.0.0.1"
"""By default only loopback listens (D9)."""
DEFAULT_PORT = 9092
PORT_MAX = 65535
LOG_LEVELS = ("debug", "info", "warning", "error")
STANDARD_OUTPUT = "-"
"""A file of ``--report``."""


class ReportOptions:
    """What a command reports about clients, and how that changes its exit code."""

    __slots__ = ("fail_on_protocol_error", "fail_on_removed", "files", "quiet", "target")

    def __init__(
        self,
        *,
        target: KafkaVersion,
        files: tuple[str, ...] = (),
        fail_on_removed: bool = False,
        fail_on_protocol_error: bool = False,
        quiet: bool = False,
    ) -> None:
        self.target: KafkaVersion = target
        """The release against which the report checks the clients."""
        self.files: tuple[str, ...] = files
        """Files to write; the suffix of each name selects the format. ``-`` is standard output, in JSON."""
        self.fail_on_removed: bool = fail_on_removed
        self.fail_on_protocol_error: bool = fail_on_protocol_error
        self.quiet: bool = quiet
        """Print no report on standard error."""


class BrokerOptions:
    """The options of a command's broker."""

    __slots__ = ("brokers", "clock", "data", "faults", "kafka_version", "log_level", "security", "seed", "settings")

    def __init__(
        self,
        *,
        kafka_version: KafkaVersion,
        settings: Settings,
        clock: ClockMode,
        brokers: int = 1,
        data: DataDirectory | None = None,
        log_level: str,
        faults: Faults | None = None,
        seed: Seed | None = None,
        security: SecurityOptions | None = None,
    ) -> None:
        self.kafka_version: KafkaVersion = kafka_version
        self.settings: Settings = settings
        self.clock: ClockMode = clock
        self.brokers: int = brokers
        self.data: DataDirectory | None = data
        """The data directory; None: offsets and records stay in memory."""
        self.log_level: str = log_level
        """A name in `LOG_LEVELS`."""
        self.faults: Faults | None = faults
        """Fault rules and conditions of the network from the start on."""
        self.seed: Seed | None = seed
        """Topics, records and offsets from the start on."""
        self.security: SecurityOptions | None = security
        """None: the listeners have neither TLS nor SASL."""


class ControlOptions:
    """Where the control API listens."""

    __slots__ = ("file", "host", "port")

    def __init__(self, *, host: str, port: int, file: str | None = None) -> None:
        self.host: str = host
        self.port: int = port
        """0: a free port."""
        self.file: str | None = file
        """File that has the URL, and the token in a second line, while the broker serves."""


class AuditOptions:
    """The options of `kproto audit`."""

    __slots__ = ("files", "kafka_version", "report")

    def __init__(self, *, files: tuple[str, ...], kafka_version: KafkaVersion | None, report: ReportOptions) -> None:
        self.files: tuple[str, ...] = files
        """``-`` is standard input."""
        self.kafka_version: KafkaVersion | None = kafka_version
        """The release of the brokers that wrote the log; None: 2.8 or newer."""
        self.report: ReportOptions = report


class ProxyOptions:
    """The options of `kproto proxy`."""

    __slots__ = (
        "advertised_host", "capture", "control", "faults", "host", "kafka_version", "log_level", "port", "port_file",
        "report", "security", "settings", "upstream", "upstream_tls_ca", "upstream_tls_certificate", "upstream_tls_key",
    )  # fmt: skip

    def __init__(
        self,
        *,
        upstream: tuple[str, int],
        report: ReportOptions,
        log_level: str,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        advertised_host: str | None = None,
        port_file: str | None = None,
        kafka_version: KafkaVersion | None = None,
        upstream_tls_ca: str | None = None,
        upstream_tls_certificate: str | None = None,
        upstream_tls_key: str | None = None,
        security: SecurityOptions | None = None,
        settings: Settings,
        capture: str | None = None,
        faults: str | None = None,
        control: ControlOptions | None = None,
    ) -> None:
        self.upstream: tuple[str, int] = upstream
        """Host and port of a broker of the cluster."""
        self.upstream_tls_ca: str | None = upstream_tls_ca
        """File of the CA certificates of the cluster; None: its listeners have no TLS."""
        self.upstream_tls_certificate: str | None = upstream_tls_certificate
        """File of the certificate that brokers of the cluster get; None: none."""
        self.upstream_tls_key: str | None = upstream_tls_key
        """File of its private key; None: the same file."""
        self.security: SecurityOptions | None = security
        """TLS towards clients; None: they connect without it."""
        self.settings: Settings = settings
        """Those of TLS towards clients."""
        self.capture: str | None = capture
        """File of the capture; None: nothing is captured."""
        self.faults: str | None = faults
        """File of fault rules; None: there are none."""
        self.control: ControlOptions | None = control
        """None: no control API."""
        self.report: ReportOptions = report
        self.log_level: str = log_level
        """A name in `LOG_LEVELS`."""
        self.host: str = host
        self.port: int = port
        """Port that stands for ``upstream``; each further broker has the next free one. 0: a free port for each."""
        self.advertised_host: str = advertised_host or host
        """Host that clients receive."""
        self.port_file: str | None = port_file
        """File that has the ``HOST:PORT`` that stands for ``upstream`` while the proxy serves."""
        self.kafka_version: KafkaVersion | None = kafka_version
        """The release of the cluster; None: the one that its API versions show."""


class ServeOptions:
    """The options of `kproto serve`."""

    __slots__ = (
        "advertised", "broker", "control", "exit_with_parent", "host", "listeners", "port", "port_file", "quiet",
        "report",
    )  # fmt: skip

    def __init__(
        self,
        *,
        broker: BrokerOptions,
        host: str = DEFAULT_HOST,
        port: int = DEFAULT_PORT,
        advertised: tuple[str, int] | None = None,
        listeners: tuple[Listener, ...] = (),
        port_file: str | None = None,
        exit_with_parent: bool = False,
        quiet: bool = False,
        report: ReportOptions | None = None,
        control: ControlOptions | None = None,
    ) -> None:
        self.broker: BrokerOptions = broker
        self.host: str = host
        self.port: int = port
        """Port of the first broker; each further broker has the next one. 0: a free port for each."""
        self.advertised: tuple[str, int] | None = advertised
        """Host and port that clients receive for the first broker; port 0: the bound one. None: as bound."""
        self.listeners: tuple[Listener, ...] = listeners
        """The listeners of each broker, the main one first; empty: the main one alone."""
        self.port_file: str | None = port_file
        """File that exists while the brokers serve: one ``HOST:PORT`` a line, in the order of node ids."""
        self.exit_with_parent: bool = exit_with_parent
        self.quiet: bool = quiet
        """Print errors only."""
        self.report: ReportOptions | None = report
        """None: no report at the end."""
        self.control: ControlOptions | None = control
        """None: no control API."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Return one port for each broker, in the order of node ids; 0 stands for a free port."""
        if self.port == 0:
            return (0,) * self.broker.brokers
        return tuple(range(self.port, self.port + self.broker.brokers))


class RunOptions:
    """The options of `kproto run`: the command, its broker, and the report."""

    __slots__ = ("broker", "command", "control", "port", "report")

    def __init__(
        self,
        *,
        command: tuple[str, ...],
        broker: BrokerOptions,
        report: ReportOptions,
        port: int = 0,
        control: ControlOptions | None = None,
    ) -> None:
        self.command: tuple[str, ...] = command
        self.broker: BrokerOptions = broker
        self.report: ReportOptions = report
        self.port: int = port
        """Port of the first broker; 0: a free port for each."""
        self.control: ControlOptions | None = control
        """None: no control API."""
