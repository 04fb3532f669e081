"""A coordinator for the tests of members."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.testing.coordinator import Coordinator


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """A fresh one, with a topic `t` of 4 partitions."""
    with Coordinator(topics={"t": 4}) as found:
        yield found
