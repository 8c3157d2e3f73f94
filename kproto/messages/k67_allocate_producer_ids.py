"""AllocateProducerIds (API key 67): a broker obtains a block of producer ids from the controller."""

from __future__ import annotations

from kproto.declaration import Int16, Int32, Int64
from kproto.message import Request, Response


class AllocateProducerIdsRequest(Request, api_key=67, versions=(0, 0), flexible=0):
    broker_id: Int32
    broker_epoch: Int64 = -1


class AllocateProducerIdsResponse(Response, api_key=67, versions=(0, 0), flexible=0):
    throttle_time_ms: Int32
    error_code: Int16
    producer_id_start: Int64
    producer_id_len: Int32
