"""The stream of events for a page that shows a broker: what has changed, by server-sent events.

Theory of operation. The broker does nothing for it: while a page is open, a worker thread looks at the state and at the
requests that are new, and sends what has changed. Each look reads and returns a limited number of requests and groups;
what came in between is counted as skipped. The next look begins once the page has taken the last one, so a slow page
misses requests, and the broker holds nothing for it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kproto.errors import ProtocolError
from kproto_server.broker.request_filter import request_filter
from kproto_server.broker.requests import log_of
from kproto_server.control.overview import overview
from kproto_server.control.results import request_json
from kproto_server.control.timeline import events_of, is_of_group
from kproto_server.observation.logged import NotKept, logged
from kproto_server.observation.named import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kproto_server.broker.controls import BrokerControls
    from kproto_server.observation.logged import LoggedRequest
    from kproto_server.observation.request_log import Entry

FIRST_REQUESTS_MAX = 10_000
"""Requests that the first look of a stream reads."""
REQUESTS_MAX = 500
"""Requests that each further look reads, and each look sends."""
OPEN_MAX = 500
"""Requests without a response that the stream looks at again."""
NAMES_MAX = 4
"""Names that are sent of each request."""
GROUP_EVENTS_MAX = 1000
"""Requests of groups that the first look reads for the timeline."""


class EventStream:
    """The events of one page, which has seen nothing yet.

    Args:
        wanted: conditions on the requests that the page shows.
        timeout_s: after this time the stream ends.
    """

    def __init__(self, wanted: Mapping[str, Any], timeout_s: float) -> None:
        self.timeout_s: float = timeout_s
        self._wanted = wanted
        self._number = 0
        self._open: dict[int, Entry] = {}
        self._sent: dict[str, Any] = {}

    def look(self, broker: BrokerControls) -> bytes:
        """Return the events since the last look.

        Raises:
            UsageError: a condition on requests is wrong.
        """
        state = broker.run(overview)
        now_ms = state.pop("now_ms")
        events = [("clock", {"now_ms": now_ms, "rate": state["clock_rate"]})]
        changed = {name: value for name, value in state.items() if self._sent.get(name) != value}
        self._sent = state
        if changed:
            events.append(("state", changed))
        if state["requests"] is not None:
            events += self._requests(broker)
        return b"".join(
            b"event: %s\ndata: %s\n\n" % (name.encode(), json.dumps(data).encode()) for name, data in events
        )

    def _requests(self, broker: BrokerControls) -> list[tuple[str, dict[str, Any]]]:
        is_first = not self._number
        entries, taken = self._new_entries(broker, FIRST_REQUESTS_MAX if is_first else REQUESTS_MAX)
        skipped = 0 if is_first else taken - self._number - len(entries)
        self._number = taken
        looked_at = [*self._responded(), *entries]
        for entry in entries:
            if entry.responded_ms is None:
                self._open[entry.number] = entry
        for number in list(self._open)[:-OPEN_MAX]:
            del self._open[number]
        rows = self._rows(looked_at, self._condition(broker))
        found: list[tuple[str, dict[str, Any]]] = []
        if rows or skipped:
            found.append(("requests", {"requests": rows, "skipped": skipped}))
        of_groups = [one for one in looked_at if is_of_group(one.frame)][-GROUP_EVENTS_MAX:]
        timeline = events_of(map(logged, of_groups))
        if timeline:
            found.append(("timeline", {"events": [one._asdict() for one in timeline]}))
        return found

    def _new_entries(self, broker: BrokerControls, count_max: int) -> tuple[list[Entry], int]:
        number = self._number

        def look(server: Any) -> tuple[list[Entry], int]:
            log = log_of(server)
            return log.newest(number, count_max), log.taken

        return broker.run(look)

    def _responded(self) -> list[Entry]:
        """Return the requests that were open and have a response now; forget those that are not kept."""
        found = [one for one in self._open.values() if one.responded_ms is not None or not one.is_kept]
        for one in found:
            del self._open[one.number]
        return [one for one in found if one.is_kept]

    def _condition(self, broker: BrokerControls) -> Callable[[LoggedRequest], bool]:
        if not self._wanted:
            return lambda request: True
        return request_filter(self._wanted, broker.requests.subjects())

    def _rows(self, entries: Sequence[Entry], is_met: Callable[[LoggedRequest], bool]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for entry in reversed(entries):
            request = logged(entry)
            if is_met(request):
                found.append(request_json(request, has_bodies=False) | {"names": _names(request)})
                if len(found) == REQUESTS_MAX:
                    break
        return found[::-1]


def _names(request: LoggedRequest) -> list[str]:
    """Return some of the names in a request: groups, transactional ids, topics."""
    try:
        names = names_in(request.request)
    except (ProtocolError, NotKept):
        return []
    topics = [one for one in names.topics if isinstance(one, str)]
    return list(dict.fromkeys([*names.groups, *names.transactional_ids, *topics]))[:NAMES_MAX]
