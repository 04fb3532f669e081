"""Assignors of the server: `uniform` and `range` as Kafka's, by name."""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.coordinator.consumer_groups.assignors import ranges, uniform
from ringleader.coordinator.consumer_groups.assignors.model import Assignor

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform.assign, "range": ranges.assign}
"""The first one is the default, as in Kafka."""
