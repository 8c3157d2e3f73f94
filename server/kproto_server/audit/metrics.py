"""Read brokers' own counts of requests that Kafka 4.0 does not serve: DeprecatedRequestsPerSec as Prometheus text.

Brokers count them by request, version and software (KIP-896). The name of the metric depends on the rules of the JMX
exporter: ``kafka_network_RequestMetrics_Count{name="DeprecatedRequestsPerSec",request="Fetch",version="3"}`` without
rules, ``kafka_network_requestmetrics_deprecatedrequests_total{...}`` with those of many charts. So a sample counts if
its name and labels have DeprecatedRequests, and it is not a rate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kproto.messages import APIS
from kproto_server.observation.observed import ClientSeen, RequestsSeen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

METRIC = "deprecatedrequests"
RATES = ("rate", "_mean", "per_second")
"""Ends of the names of samples that are no counts."""
UNKNOWN = "unknown"
"""Kafka's software of a client that has not sent it."""
LINE_MAX = 1024 * 1024
BEGINNINGS = (b"# HELP", b"# TYPE")

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\}\s+([0-9.eE+-]+)(?:\s+[0-9.]+)?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_KEYS = {name.lower(): key for key, name in APIS.items()} | {"listoffset": 2}


def is_metrics(beginning: bytes) -> bool:
    """Return whether a file that begins so is Prometheus text."""
    text = beginning.lstrip()
    return text.startswith(BEGINNINGS) or (METRIC.encode() in text.lower() and b"Completed request:" not in text)


class Metrics:
    """The samples of one or more brokers: `read` takes their text."""

    def __init__(self) -> None:
        self.sample_count: int = 0
        """Counts of requests that Kafka 4.0 does not serve, those that are 0 included."""
        self.unreadable_count: int = 0
        """Samples of the metric without request or version."""
        self._clients: list[ClientSeen] = []

    def read(self, stream: BinaryIO) -> None:
        """Read the text of one broker."""
        while line := stream.readline(LINE_MAX):
            text = line.decode(errors="replace")
            if METRIC in text.lower() and not text.startswith("#"):
                self._read(text)

    def clients(self) -> Iterator[ClientSeen]:
        """Yield a client for each sample; its client id is not known."""
        yield from self._clients

    def _read(self, text: str) -> None:
        sample = _SAMPLE.match(text)
        if sample is None:
            self.unreadable_count += 1
            return
        if sample[1].lower().endswith(RATES):
            return
        labels = {name.lower(): value for name, value in _LABEL.findall(sample[2])}
        api_key = _KEYS.get(labels.get("request", "").lower().replace("_", ""))
        version = labels.get("version", "")
        if labels.get("attribute", "count").lower().endswith(RATES):
            return
        try:
            count = int(float(sample[3]))
        except (ValueError, OverflowError):
            count = -1
        if api_key is None or not version.isdecimal() or count < 0:
            self.unreadable_count += 1
            return
        self.sample_count += 1
        if count:
            self._clients.append(_client(labels, RequestsSeen(api_key, int(version), count)))


def _client(labels: dict[str, str], row: RequestsSeen) -> ClientSeen:
    name = labels.get("clientsoftwarename", UNKNOWN)
    software = (name, labels.get("clientsoftwareversion", "")) if name != UNKNOWN else ("", "")
    return ClientSeen(
        client_id="",
        software_name=software[0],
        software_version=software[1],
        negotiates=bool(software[0]),
        requests=(row,),
        errors=(),
        commits=(),
        closed=(),
        failed_authentications=(),
        logins=(),
        largest_retention_ms=None,
    )
