"""A log for all tests of this folder that keeps its lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict, FilteringBoundLogger


class Lines(list[Mapping[str, Any]]):
    """Log lines; `log` writes them."""

    def __init__(self) -> None:
        super().__init__()

        def keep(_logger: Any, method: str, event: EventDict) -> EventDict:
            self.append({"level": method, **event})
            raise structlog.DropEvent

        self.log: FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0)
        )

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """Those of this event."""
        return [line for line in self if line["event"] == event]


@pytest.fixture
def lines() -> Lines:
    """What was logged."""
    return Lines()
