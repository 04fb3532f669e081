"""The embedded topic log: record batches in files, as they came."""

from __future__ import annotations

from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.coordinator.topics.log import MAX_TIMESTAMP, Topics
from ringleader.coordinator.topics.partition import AppendResult
from ringleader.coordinator.topics.settings import TopicSettings

__all__ = ["MAX_TIMESTAMP", "AppendResult", "DamagedError", "TopicInfo", "TopicSettings", "Topics"]
