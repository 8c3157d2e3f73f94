"""The options of the commands of one word, for the help, the parser and shell completion."""

from __future__ import annotations

from kproto_server.commandline.arguments import Command, Option
from kproto_server.commandline.options import DEFAULT_HOST, DEFAULT_PORT

KAFKA_VERSION = Option(
    "--kafka-version", "RELEASE", "behave as this release, 0.8.2 to 4.4 (default: latest, all at once)"
)
BROKERS = Option("--brokers", "N", "this many brokers, each with a port of its own (default 1)")
SET = Option("--set", "NAME=VALUE", "a broker setting by Kafka's name; may be repeated", repeats=True)
CONFIG = Option("--config", "FILE", "broker settings from Kafka's server.properties; --set goes on top")
CLOCK = Option("--clock", "CLOCK", "real, scaled:N (N times as fast), manual, or auto (jumps when idle)")
DATA_DIR = Option("--data-dir", "DIR", "keep offsets and records here, in Kafka's format (default: in memory)")
DURABILITY = Option("--durability", "MODE", "survive power loss (fsync; default with --data-dir) or only kills (os)")
REPAIR = Option("--repair", "", "truncate damaged logs where the damage begins instead of refusing them")
LOG_LEVEL = Option("--log-level", "LEVEL", "print events from this level on: debug, info, warning, error")
FAULTS = Option("--faults", "FILE", "fault rules in YAML: requests that get errors, delays, closed connections ...")
SEED = Option("--seed", "FILE", "begin with the topics, records and groups' offsets of this YAML file")
FAULT_OPTIONS = (
    FAULTS,
    Option(
        "--network",
        "CONDITIONS",
        "the network to clients, e.g. latency_ms=20 or node_id=2,black_hole; may be\nrepeated",
        repeats=True,
    ),
    Option("--forward-commits", "", "each broker accepts the commits of all groups, as no real one does"),
    Option("--conditional-commits", "", "commits may name the offset that they expect, as for no real broker"),
)
CONTROL_HOST = Option(
    "--control-host", "HOST", f"address of the control port (default {DEFAULT_HOST}; others need a token)"
)
CONTROL_OPTIONS = (
    Option("--control-port", "PORT", "control clock, nodes, faults ... over HTTP on this port, 0: a free one"),
    CONTROL_HOST,
)
CONTROL_FILE = Option("--control-file", "FILE", "while the command serves, has the control port's URL, and its token")
TLS_OPTIONS = (
    Option(
        "--tls",
        "CERTIFICATE",
        "listen with TLS, with a right certificate (auto), or one to be refused: expired,\n"
        "not-yet-valid, wrong-name, unknown-ca, revoked, weak-key",
    ),
    Option("--tls-dir", "DIR", "keep the CA, certificates and keys here (default: removed at the end)"),
)
SECURITY_OPTIONS = (
    *TLS_OPTIONS,
    Option(
        "--sasl",
        "MECHANISMS",
        "clients authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, or several\nseparated by commas",
    ),
    Option(
        "--user",
        "NAME:PASSWORD",
        "a user of SASL; may be repeated (default: kproto, with a password that is made)",
        repeats=True,
    ),
)
BROKER_OPTIONS = (
    BROKERS,
    KAFKA_VERSION,
    SET,
    CONFIG,
    CLOCK,
    DATA_DIR,
    DURABILITY,
    REPAIR,
    SEED,
    *SECURITY_OPTIONS,
    *FAULT_OPTIONS,
    LOG_LEVEL,
)
TARGET = Option("--target", "RELEASE", "report what would break on this Kafka release (default: the newest)")
FAIL_ON_REMOVED = Option("--fail-on-removed", "", "exit with 1 if something would break there")
REPORT = Option(
    "--report",
    "FILE",
    "write the whole report: .json, .md or .html, or - for JSON on standard\noutput; may be repeated",
    repeats=True,
)
REPORT_OPTIONS = (
    TARGET,
    FAIL_ON_REMOVED,
    Option("--fail-on-protocol-error", "", "exit with 3 if the broker closed a connection for what a client sent"),
    REPORT,
)

SERVE = Command(
    "serve",
    "Run a broker until Ctrl-C or SIGTERM. With an option of the report, write it at the end.",
    "",
    (
        Option("--host", "HOST", f"address to listen on (default: of listeners, else {DEFAULT_HOST})"),
        Option("--port", "PORT", f"port of the first broker, 0: a free one for each (default {DEFAULT_PORT})"),
        Option("--port-file", "FILE", "while the broker serves, has its HOST:PORT, a line for each broker"),
        Option("--exit-with-parent", "", "end when the process that has started this one ends"),
        *CONTROL_OPTIONS,
        CONTROL_FILE,
        Option("--quiet", "", "print nothing but errors"),
        *REPORT_OPTIONS,
        *BROKER_OPTIONS,
    ),
)
RUN = Command(
    "run",
    "Run a command with KAFKA_BOOTSTRAP_SERVERS set to a broker of its own (and KPROTO_CONTROL_URL to its\n"
    "control port, if it has one), exit with its exit code, and\n"
    "report what its Kafka clients sent: on standard error, so that the command's output can be piped.",
    "-- COMMAND [ARGUMENT ...]",
    (
        *REPORT_OPTIONS,
        Option("--quiet", "", "print no report and no events but errors"),
        Option("--port", "PORT", "port of the first broker (default: a free port for each)"),
        *CONTROL_OPTIONS,
        *BROKER_OPTIONS,
    ),
)
AUDIT = Command(
    "audit",
    "Report what would break, as kproto run does from a broker of its own, from what clients sent to real brokers:\n"
    "their request log (kafka.request.logger at DEBUG or TRACE, of Kafka 0.10 and newer), a capture of the network\n"
    "without TLS (pcap, pcapng), brokers' metrics (DeprecatedRequestsPerSec as Prometheus text), or reports of kproto\n"
    "in JSON, also a directory of them. FILE may be compressed (.gz); - is standard input.",
    "FILE [FILE ...]",
    (
        Option("--kafka-version", "RELEASE", "the release of the brokers; must be given for a log older than 2.8"),
        TARGET,
        FAIL_ON_REMOVED,
        REPORT,
        Option("--quiet", "", "print no report"),
    ),
)
PROXY = Command(
    "proxy",
    "Stand in front of a real cluster until Ctrl-C or SIGTERM, keep its clients here, and report on what they sent,\n"
    "as kproto run does. SASL passes through. The files of --report are also written every few seconds.",
    "",
    (
        Option(
            "--upstream", "HOST:PORT", "a broker of the cluster; the others have ports of their own as they are named"
        ),
        Option("--upstream-tls-ca", "FILE", "connect to the cluster with TLS, and trust these CA certificates (PEM)"),
        Option("--upstream-tls-certificate", "FILE", "the certificate for brokers that ask for one (PEM)"),
        Option("--upstream-tls-key", "FILE", "its private key (PEM; default: in the same file)"),
        *TLS_OPTIONS,
        Option("--set", "NAME=VALUE", "a setting of TLS towards clients by Kafka's name (ssl.)", repeats=True),
        FAULTS,
        Option("--capture", "FILE", "write what clients and brokers send, as TCP in a pcap file (Wireshark opens it)"),
        Option("--host", "HOST", f"address to listen on (default {DEFAULT_HOST})"),
        Option(
            "--port",
            "PORT",
            f"port that stands for --upstream, each further broker has the next free\none; 0: a free one for each "
            f"(default {DEFAULT_PORT})",
        ),
        Option("--advertised-host", "HOST", "the host that clients receive (default: --host, or this machine's name)"),
        Option("--port-file", "FILE", "while the proxy serves, has the HOST:PORT that stands for --upstream"),
        Option("--control-port", "PORT", "fault rules, requests, the report ... over HTTP on this port, 0: a free one"),
        CONTROL_HOST,
        CONTROL_FILE,
        Option("--kafka-version", "RELEASE", "the release of the cluster; must be given if it is older than 0.10"),
        *REPORT_OPTIONS,
        Option("--quiet", "", "print no report and no events but errors"),
        LOG_LEVEL,
    ),
)
CAPTURE = Command(
    "capture",
    "Copy the connections of Kafka out of captures of the network (pcap or pcapng, also .gz), in one pcap file: whole\n"
    "requests and responses without lost, repeated or unordered packets, and without other traffic.",
    "FILE [FILE ...]",
    (
        Option("--output", "FILE", "the pcap file to write; only its owner may read it"),
        Option("--client-id", "ID", "only connections of this client id; may be repeated", repeats=True),
    ),
)
REPLAY = Command(
    "replay",
    "Send the requests of a capture (pcap or pcapng) to a broker as their client, in their order, with the ids that\n"
    "this broker gives, and show the first responses that differ from the captured ones.",
    "FILE HOST:PORT",
    (
        Option("--capture", "FILE", "write what is sent and received, as TCP in a pcap file"),
        Option("--timeout", "SECONDS", "how long to wait for each response (default 30)"),
        Option("--report", "FILE", "write all responses that differ: .json"),
    ),
)
DIFF = Command(
    "diff",
    "Show the first responses in which two captures (pcap or pcapng) of the same client differ, decoded, without what\n"
    "varies by nature: ids, addresses, times.",
    "A B",
    (REPLAY.options["--report"],),
)
COMPLETION = Command(
    "completion",
    "Print the completion of kproto's commands and options for a command interpreter: bash, zsh or fish.",
    "bash|zsh|fish",
    (),
)
COMMANDS = {
    "serve": SERVE,
    "run": RUN,
    "audit": AUDIT,
    "proxy": PROXY,
    "capture": CAPTURE,
    "replay": REPLAY,
    "diff": DIFF,
    "completion": COMPLETION,
}
"""The commands of one word; `kproto log`, `scenario` and `conform` have tables of their own."""
