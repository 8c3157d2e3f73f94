"""Decode a range of offsets of a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kproto.arrow import fast, reference
from kproto.arrow.counts import Counts
from kproto.arrow.decoding import Decoded, DecodeRequest, View
from kproto.logs.ranges import OffsetRange, RangeBlocks
from kproto.logs.transactions import TransactionOutcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kproto.logs.blocks import Block

    Decoder = Callable[[Block, DecodeRequest], Decoded]

DECODERS: dict[str, Decoder] = {"fast": fast.decode_block, "reference": reference.decode_block}


class RangeReader:
    """Decodes a range. Iterate once, then read `counts` and `blocks`. ``only_last``: as in `DecodeRequest`."""

    def __init__(
        self, wanted: OffsetRange, view: View, *, decoder: str = "fast", check_crc: bool = True, only_last: bool = False
    ) -> None:
        self.blocks: RangeBlocks = RangeBlocks(wanted)
        self.counts: Counts = Counts()
        self.block: Block | None = None
        """The block of the content that was yielded last."""
        self._wanted = wanted
        self._view = view
        self._decode = DECODERS[decoder]
        self._check_crc = check_crc
        self._only_last = only_last

    def __iter__(self) -> Iterator[Decoded]:
        """Yield the content of each block.

        Raises:
            CorruptLog, NoLog, OSError: while iterating: as `RangeBlocks`.
            MissingPackage: while iterating: a compression needs a package that is not installed.
        """
        partition = self._wanted.partition
        outcomes = TransactionOutcomes(lambda offset: RangeBlocks(OffsetRange(partition, offset, None)))
        for block in self.blocks:
            request = DecodeRequest(
                view=self._view,
                log_partition=partition.number,
                outcomes=outcomes,
                start_offset=self.blocks.next_offset,
                end_offset=self._wanted.end_offset,
                check_crc=self._check_crc,
                only_last=self._only_last,
            )
            decoded = self._decode(block, request)
            self.counts.add(decoded.counts)
            self.block = block
            yield decoded
