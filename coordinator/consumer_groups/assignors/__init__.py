"""Assignors of the server: `uniform` and `range` as Kafka's, `rack` and `weighted`, by name."""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.coordinator.consumer_groups.assignors import rack, ranges, uniform, weighted
from ringleader.coordinator.consumer_groups.assignors.model import Assignor

ASSIGNORS: Mapping[str, Assignor] = {
    "uniform": uniform.assign,
    "range": ranges.assign,
    "rack": rack.assign,
    "weighted": weighted.assign,
}
"""Members may ask for those of them that `group.consumer.assignors` names."""
