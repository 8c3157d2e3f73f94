"""What a test begins in a running broker and has to end: by a method, or with a block."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class EndsWithBlock:
    """As a context manager, ``with`` or ``async with``, it ends with the block."""

    def _end(self) -> None:
        """End it, unless it has ended.

        Raises:
            RuntimeError: the broker does not run.
        """
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_if_running()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; that takes no time.

        Cancellation: none.
        """
        self._end_if_running()

    def _end_if_running(self) -> None:
        with suppress(RuntimeError):  # the broker was stopped in the block
            self._end()
