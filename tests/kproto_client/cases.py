"""All cases that any broker can be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.kproto_client.reset_cases import CASES as RESET_CASES

CASES: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {**RESET_CASES}
