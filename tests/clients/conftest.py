"""A coordinator for the tests of members."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.testing.coordinator import Coordinator


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """A fresh one, with a topic `t` of 4 partitions."""
    # A start makes the shards of all partitions: a third of its CPU time with the default of 50.
    with Coordinator(topics={"t": 4}, offsets_topic_num_partitions=5) as found:
        yield found
