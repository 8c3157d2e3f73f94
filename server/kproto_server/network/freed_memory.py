"""How much of the memory that the process has freed the C library keeps.

glibc gives freed memory at the end of its heap back to the kernel, and gets it again for the next request, page by
page: copying the 100 KB of a Produce request then takes 80 us instead of 5, and a consumer with responses of 4 MB costs
the broker three times the processor time. Once a block of a larger size was freed, glibc keeps twice as much
(mallopt(3), M_MMAP_THRESHOLD). Without effect with other C libraries.
"""

SMALLEST_BLOCK_BYTES = 3 << 19
"""At first 3 MB are kept: more would show in the memory of a committed offset."""

LARGE_MESSAGE_BYTES = 64 << 10
LARGE_MESSAGE_BLOCK_BYTES = 8 << 20
"""A client with large messages sends or gets several of them at a time: with 3 MB kept, `bench throughput` consumes at
360 to 390 MB/s with a data directory; with 16 MB, at 600 to 640."""

LARGEST_BLOCK_BYTES = 16 << 20
"""At most 32 MB are kept."""

BLOCK_SHARE = 2
"""Size of the block by size of the message: a response is in memory up to four times (the records of each partition,
all records, body, frame), and glibc keeps twice the block."""


class FreedMemory:
    """How much glibc keeps by now; it only grows."""

    __slots__ = ("_block_bytes",)

    def __init__(self) -> None:
        self._block_bytes = 0

    def keep_for(self, message_bytes: int) -> None:
        """Have as much kept as further requests or responses of this size need."""
        if self._block_bytes < LARGEST_BLOCK_BYTES:
            least = SMALLEST_BLOCK_BYTES if message_bytes < LARGE_MESSAGE_BYTES else LARGE_MESSAGE_BLOCK_BYTES
            block_bytes = min(max(message_bytes * BLOCK_SHARE, least), LARGEST_BLOCK_BYTES)
            if block_bytes > self._block_bytes:
                self._block_bytes = block_bytes
                bytes(block_bytes)  # freed at once
