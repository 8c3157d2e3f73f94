"""One line of Kafka's request log (`kafka.request.logger` at DEBUG or TRACE) as a value.

The text that a line has depends on the release; the layout of the appender stands around it:

=========== =========================================================================================
0.10.0      ``Completed request:Name: FetchRequest; Version: 2; CorrelationId: 12; ClientId: app; ...``
            for Fetch (until 0.10.0) and ControlledShutdown, else as 0.10.1
0.10.1      ``Completed request:{api_key=8,api_version=2,correlation_id=5,client_id=app} -- {...} from connection ...``
1.0 to 2.7  ``Completed request:RequestHeader(apiKey=FETCH, apiVersion=8, clientId=app, correlationId=9) -- {...}``
            ``,response:{...} from connection ...``; from 2.4 on it ends with the client's software
2.8         ``Completed request:{"isForwarded":false,"requestHeader":{...},"request":{...},"response":{...},...}``
=========== =========================================================================================

At TRACE the lines have the same form.

Source: brokers of the releases in fixtures/request-logs.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kproto.messages import APIS
from kproto_server.audit.senders import API_VERSIONS, NO_REPLICA

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

COMPLETED = b"Completed request:"
"""Every line of a request has these bytes; `logged_request` reads no other line."""

NO_RETENTION = -1
UNKNOWN = "unknown"
"""Kafka's software name and version of a client that did not send them."""
OFFSET_COMMIT = 8
REPLICA_APIS = frozenset({1, 2, 23})
"""Fetch, ListOffsets and OffsetForLeaderEpoch, which have the id of a follower."""
SENDERS_MAX = 1000

_UPPER = re.compile(r"(?<!^)(?=[A-Z])")
_KEYS = {_UPPER.sub("_", name).upper(): key for key, name in APIS.items()}
_KEYS |= {"ALTER_ISR": 56, "ELECT_PREFERRED_LEADERS": 43}
"""API key by the name in Kafka's ApiKeys, with the former names of two of them."""

_NAMED = re.compile(r"Name: (\w+); Version: (\d+); CorrelationId: -?\d+; ?ClientId: ?(.*?); (.*)")
_NAMED_KEYS = {"FetchRequest": 1, "ControlledShutdownRequest": 7}
_STRUCT = re.compile(r"\{api_key=(\d+),api_version=(\d+),correlation_id=-?\d+,client_id=(.*?)\} -- (.*)")
_HEADER = re.compile(r"RequestHeader\(apiKey=(\w+), apiVersion=(\d+), clientId=(.*?), correlationId=-?\d+\) -- (.*)")
_FROM = " from connection "
_TIMES = ";totalTime:"
_SENDER_BEGINS = ",securityProtocol:"
_SENDER = re.compile(
    r".*?(?:,listener:([^,\s]+))?"
    r"(?:,clientInformation:ClientInformation\(softwareName=(.*?), softwareVersion=(.*?)\).*)?(?: \(|$)"
)
_HOST = re.compile(r"^.*?:\d+-|:\d+(-\d+)*$")
"""What stands before and behind the client's host in a connection: the broker's address, and a port and numbers."""
_PRINCIPAL = re.compile(r",principal:(.*?)(?:,listener:|,clientInformation:| \(|$)")
_RETENTION = re.compile(r"[{,]retention_time(?:_ms)?=(-?\d+)")
_REPLICA = re.compile(r"(?:\{replica_id=|ReplicaId: )(-?\d+)")
_SOFTWARE = re.compile(r"\{client_software_name=(.*?),client_software_version=([^,}]*)")
_ERRORS = re.compile(r"error_code=(?<=[{,_]error_code=)(-?[1-9]\d*)")
"""It begins with text, which `re` finds faster than a class of characters."""
_SOME_ERROR = re.compile(r'rrorCode":[^0]')


class LoggedRequest(NamedTuple):
    """A request that a broker has completed."""

    api_key: int
    api_version: int
    client_id: str
    """Empty: the client sent none."""
    connection: str
    """Addresses of both ends, and from 1.0 on a number."""
    listener: str
    """Empty before 0.10.2."""
    software_name: str
    """Empty: the client did not send it, or the broker is older than 2.4."""
    software_version: str
    replica_id: int
    """The broker that sent the request as a follower; `NO_REPLICA` for a client."""
    retention_time_ms: int
    """The retention time of OffsetCommit v2 to v4; `NO_RETENTION` for other requests."""
    error_codes: tuple[int, ...]
    """The error codes of the response, without NONE; the log has responses from 1.0 on."""
    is_forwarded: bool
    """Whether a broker forwarded a client's request to the controller: the client's own request has another line."""
    is_json: bool
    """Whether the broker is 2.8 or newer."""
    principal: str
    """Empty: the line has none."""

    @property
    def client_host(self) -> str:
        """The client's address: the connection has the broker's before it."""
        return _HOST.sub("", self.connection)


def logged_request(line: str) -> LoggedRequest | None:
    """Return the request of a line that has `COMPLETED`; None: the line is incomplete, or of another format."""
    start = line.find("Completed request:") + len("Completed request:")
    try:
        return _of_json(line, start) if line.startswith('{"', start) else _of_text(line[start:])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _of_json(line: str, start: int) -> LoggedRequest:
    logged, _ = json.JSONDecoder().raw_decode(line, start)
    header, request = logged["requestHeader"], logged["request"]
    software = logged["clientInformation"]
    name, version = software["softwareName"], software["softwareVersion"]
    if header["requestApiKey"] == API_VERSIONS and "clientSoftwareName" in request:
        # A connection has no software yet when its ApiVersions request arrives.
        name, version = request["clientSoftwareName"], request["clientSoftwareVersion"]
    replica = request.get("replicaState", request)
    codes = tuple(_error_codes(logged["response"])) if _SOME_ERROR.search(line, start) else ()
    return LoggedRequest(
        int(header["requestApiKey"]),
        int(header["requestApiVersion"]),
        str(header["clientId"] or ""),
        str(logged["connection"]),
        str(logged["listener"]),
        *_known(str(name), str(version)),
        int(replica.get("replicaId", NO_REPLICA)),
        int(request.get("retentionTimeMs", NO_RETENTION)),
        codes,
        logged.get("isForwarded") is True,
        True,
        str(logged.get("principal") or ""),
    )


def _of_text(text: str) -> LoggedRequest:
    before, _, after = text.rpartition(_FROM)
    connection, found, tail = after.partition(_TIMES)
    if not found or not before:
        raise ValueError("the line is cut")
    api_key, api_version, client_id, rest = _header(before)
    body, _, response = rest.partition(",response:{")
    retention = _RETENTION.search(body) if api_key == OFFSET_COMMIT else None
    replica = _REPLICA.search(body) if api_key in REPLICA_APIS else None
    software = _SOFTWARE.match(body) if api_key == API_VERSIONS else None
    # The times before it differ in each line; the rest is that of few clients.
    sender = _sender(tail[max(0, tail.find(_SENDER_BEGINS)) :])
    name, version = software.groups() if software else (sender.software_name, sender.software_version)
    return LoggedRequest(
        api_key,
        api_version,
        client_id,
        connection,
        sender.listener,
        *_known(name, version),
        int(replica[1]) if replica else NO_REPLICA,
        int(retention[1]) if retention else NO_RETENTION,
        tuple(map(int, _ERRORS.findall("{" + response))),
        False,
        False,
        sender.principal,
    )


class _Sender(NamedTuple):
    """What the end of a line of text says of the client; empty: the line does not have it."""

    listener: str
    software_name: str
    software_version: str
    principal: str


@lru_cache(SENDERS_MAX)
def _sender(text: str) -> _Sender:
    found, principal = _SENDER.match(text), _PRINCIPAL.search(text)
    listener, name, version = found.groups("") if found else ("", "", "")
    return _Sender(listener, name, version, principal[1] if principal else "")


def _header(text: str) -> tuple[int, int, str, str]:
    """Return API key, version, client id and the rest of the text before the connection."""
    if match := _HEADER.match(text):
        api_key = _KEYS[match[1]]
    elif match := _STRUCT.match(text):
        api_key = int(match[1])
    elif match := _NAMED.match(text):
        api_key = _NAMED_KEYS[match[1]]
    else:
        raise ValueError("no header")
    return api_key, int(match[2]), "" if match[3] == "null" else match[3], match[4]


def _known(name: str, version: str) -> tuple[str, str]:
    """Return a software's name and version; empty for Kafka's "unknown"."""
    return ("", "") if name == UNKNOWN else (name, version)


def _error_codes(value: Any) -> Iterator[int]:
    """Yield every error code in a response other than 0."""
    if isinstance(value, list):
        for element in value:
            yield from _error_codes(element)
    elif isinstance(value, dict):
        for name, element in value.items():
            if isinstance(element, (list, dict)):
                yield from _error_codes(element)
            elif element and name.endswith(("errorCode", "ErrorCode")):
                yield int(element)
