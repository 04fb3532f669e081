"""The embedded topic log: record batches in files, as they came."""

from __future__ import annotations

from ringleader.coordinator.topics.catalog import CatalogError, TopicInfo
from ringleader.coordinator.topics.log import EARLIEST, LATEST, MAX_TIMESTAMP, Topics
from ringleader.coordinator.topics.partition import AppendResult
from ringleader.coordinator.topics.reading import ReadResult
from ringleader.coordinator.topics.settings import TopicSettings

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "AppendResult",
    "CatalogError",
    "ReadResult",
    "TopicInfo",
    "TopicSettings",
    "Topics",
]
