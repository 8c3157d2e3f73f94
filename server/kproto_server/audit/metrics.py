"""Read brokers' own counts of requests that Kafka 4.0 does not serve: DeprecatedRequestsPerSec, in two formats.

Brokers count them by request, version and software (KIP-896). The name of the metric depends on the rules of the JMX
exporter: ``kafka_network_RequestMetrics_Count{name="DeprecatedRequestsPerSec",request="Fetch",version="3"}`` without
rules, ``kafka_network_requestmetrics_deprecatedrequests_total{...}`` with those of many charts. So a sample counts if
its name and labels have DeprecatedRequests, and it is not a rate. Kafka's JmxTool writes the names of MBeans and their
attributes: ``kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,request=Fetch,...:Count=12``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kproto.messages import APIS
from kproto_server.observation.observed import ClientSeen, RequestsSeen

if TYPE_CHECKING:
    from typing import BinaryIO

METRIC = "deprecatedrequests"
RATES = ("rate", "_mean", "per_second")
"""Ends of the names of samples that are no counts."""
COUNT = "Count"
"""The attribute of an MBean that is no rate."""
UNKNOWN = "unknown"
"""Kafka's software of a client that has not sent it."""
LINE_MAX = 1024 * 1024
BEGINNINGS = (b"# HELP", b"# TYPE")

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\}\s+([0-9.eE+-]+)(?:\s+[0-9.]+)?\s*$")
_MBEAN = re.compile(r"kafka\.network:type=RequestMetrics,(.*):(\w+)=(.*?)\s*$")
_PROPERTY = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[^,]*)')
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
        self.clients: list[ClientSeen] = []
        """A client for each sample; its client id is not known."""

    def read(self, stream: BinaryIO) -> None:
        """Read the text of one broker."""
        while line := stream.readline(LINE_MAX):
            text = line.decode(errors="replace")
            if METRIC in text.lower() and not text.startswith("#"):
                self._read(text)

    def _read(self, text: str) -> None:
        if bean := _MBEAN.match(text):
            labels = {name.lower(): value.strip('"') for name, value in _PROPERTY.findall(bean[1])}
            if bean[2] == COUNT:
                self._count(labels, bean[3])
        elif sample := _SAMPLE.match(text):
            if not sample[1].lower().endswith(RATES):
                self._count({name.lower(): value for name, value in _LABEL.findall(sample[2])}, sample[3])
        else:
            self.unreadable_count += 1

    def _count(self, labels: dict[str, str], number: str) -> None:
        api_key = _KEYS.get(labels.get("request", "").lower().replace("_", ""))
        version = labels.get("version", "")
        if labels.get("attribute", "count").lower().endswith(RATES):
            return
        try:
            count = int(float(number))
        except (ValueError, OverflowError):
            count = -1
        if api_key is None or not version.isdecimal() or count < 0:
            self.unreadable_count += 1
            return
        self.sample_count += 1
        if count:
            self.clients.append(_client(labels, RequestsSeen(api_key, int(version), count)))


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
